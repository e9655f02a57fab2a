// Changes protobuf messages field by field, so that most inputs get past the parser.
#ifndef GRIDCLOCK_TESTS_FUZZ_MESSAGE_MUTATOR_H_
#define GRIDCLOCK_TESTS_FUZZ_MESSAGE_MUTATOR_H_

#include <cstddef>
#include <cstdint>

#include <google/protobuf/message.h>

namespace gridclock {

// For LLVMFuzzerCustomMutator: reads `data` as `message` (what cannot be read is left out), changes
// it a few times and writes it back. Now and then the bytes themselves are changed. With it comes
// an LLVMFuzzerInitialize that keeps protobuf from writing a line for every string that is not
// UTF-8.
std::size_t MutateMessage(google::protobuf::Message* message, std::uint8_t* data, std::size_t size,
                          std::size_t max_size, unsigned seed);
// The same for bytes that are read as either of two messages.
template <typename First, typename Second>
std::size_t MutateEither(std::uint8_t* data, std::size_t size, std::size_t max_size,
                         unsigned seed) {
  First first;
  Second second;
  google::protobuf::Message* message = &first;
  if (seed % 2 != 0) message = &second;
  return MutateMessage(message, data, size, max_size, seed / 2);
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_FUZZ_MESSAGE_MUTATOR_H_
