// The elements of operands as doubles, wherever the operands lie: on the host, or on a device whose
// memory is brought here page by page as it is asked for.
#ifndef GRIDCLOCK_KERNELS_VERIFY_ELEMENTS_H_
#define GRIDCLOCK_KERNELS_VERIFY_ELEMENTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/api/kernel.h"

namespace gridclock {

// Brings bytes from where an operand lies. Called from one thread.
class OperandReader {
 public:
  virtual ~OperandReader() = default;
  // May be asynchronous until Finish.
  virtual absl::Status Read(const void* from, std::span<std::byte> to) = 0;
  virtual absl::Status Finish() = 0;
};

// One operand. Load may be called from several threads, the rest from one while nobody loads.
class OperandElements {
 public:
  static constexpr std::size_t kPageBytes = std::size_t{512} << 10;

  // A bool is 0 or 1; of what a kernel wrote as one, another byte is wrong and is loaded as it is.
  enum class Bools : std::uint8_t { kTruth, kBytes };

  // An integer that no double holds is loaded as the one nearest to it, or as that of the two
  // beside it whose last bit is 1: what rounds this to fewer digits rounds the integer.
  enum class Integers : std::uint8_t { kNearest, kToOdd };

  // Not `paged`: the operand lies on the host.
  OperandElements(const OperandView& view, bool paged, Bools bools = Bools::kTruth,
                  Integers integers = Integers::kNearest);

  // Element `index`; those of a list follow one another. If its page is not here it is asked for,
  // `*missing` becomes true and the number means nothing.
  double Load(std::int64_t index, bool* missing) const;
  // The same of a type of 8 bytes that is on the host: its bits, which a double may not hold.
  std::uint64_t LoadBits(std::int64_t index) const;

  bool paged() const { return !pages_.empty(); }

  // A page that was asked for: where its bytes lie and how many they are.
  struct Page {
    std::size_t index = 0;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
  };
  // Those asked for since the last call.
  std::vector<Page> TakeWanted();
  void Put(std::size_t index, const std::byte* data) { pages_[index] = data; }
  void DropAll();

 private:
  struct Tensor {
    DType dtype = DType::kF32;
    const std::byte* data = nullptr;
    std::int64_t first = 0, elements = 0;  // `first` of its elements is that one of the list.
    std::size_t first_page = 0, page_count = 0;
    int shift = 0;  // Of an element's index to its page.
  };

  double LoadFrom(const Tensor& tensor, const std::byte* data, std::int64_t index) const;
  // That holds element `*index`, which becomes the number within it.
  const Tensor& TensorOf(std::int64_t* index) const;

  const Integers integers_;
  std::vector<Tensor> tensors_;
  std::vector<const std::byte*> pages_;  // Empty: all is here.
  std::unique_ptr<std::atomic<bool>[]> wanted_;
};

// The host memory that pages lie in, bounded.
class PageStore {
 public:
  PageStore(OperandReader& reader, std::uint64_t most_bytes);

  // Brings what was asked of the operands. False if there was no room for all of it beside what was
  // here: then all that was here is dropped, and as much as fits is brought.
  absl::StatusOr<bool> Bring(std::span<OperandElements* const> operands);
  void Clear(std::span<OperandElements* const> operands);

 private:
  OperandReader& reader_;
  const std::size_t most_pages_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::size_t used_ = 0;  // Of `memory_`, from its start.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_VERIFY_ELEMENTS_H_
