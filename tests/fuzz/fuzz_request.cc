// Bytes as a RunRequest, in one piece and in many, and as the messages of a StreamRun. However the
// transport cut it, the answer must be the same.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gridclock/v1/kernels.pb.h"
#include "proto/codec/request.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/message_mutator.h"

namespace gridclock {
namespace {

using Pieces = std::vector<std::span<const std::byte>>;

Pieces Cut(std::span<const std::byte> bytes, std::size_t step) {
  Pieces pieces;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    pieces.push_back(bytes.subspan(at, std::min(step, bytes.size() - at)));
    if (at % 3 == 0) pieces.push_back({});  // Empty pieces are legal.
  }
  return pieces;
}

bool Inside(const ByteRange& range, const Pieces& pieces) {
  if (range.size == 0) return true;
  std::uint64_t left = 0;
  for (std::size_t i = range.slice; i < pieces.size(); ++i) left += pieces[i].size();
  return range.slice < pieces.size() && range.offset + range.size <= left;
}

void FuzzRun(std::span<const std::byte> bytes) {
  const Pieces whole = {bytes};
  const auto decoded = DecodeRunRequest(whole, {});
  const Pieces parts = Cut(bytes, 7);
  const auto cut = DecodeRunRequest(parts, {});
  FUZZ_CHECK(decoded.status() == cut.status());
  if (!decoded.ok()) return;
  FUZZ_CHECK(decoded->data.size() == decoded->request.inputs.size());
  FUZZ_CHECK(decoded->content == cut->content);
  for (const ByteRange& range : decoded->data) FUZZ_CHECK(Inside(range, whole));
  for (const ByteRange& range : cut->data) FUZZ_CHECK(Inside(range, parts));
}

void FuzzStream(std::span<const std::byte> bytes) {
  StreamRunDecoder decoder({});
  const Pieces whole = {bytes}, parts = Cut(bytes, 5);
  for (const Pieces* pieces : {&whole, &parts}) {
    const auto message = decoder.Decode(*pieces);
    if (!message.ok()) return;
    if (const auto* chunk = std::get_if<StreamChunk>(&*message)) {
      FUZZ_CHECK(Inside(chunk->data, *pieces));
    }
  }
  if (decoder.header().empty()) return;
  const auto header = decoder.header().Finish();
  if (header.ok()) FUZZ_CHECK(header->data.size() == header->request.inputs.size());
}

}  // namespace
}  // namespace gridclock

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return gridclock::MutateEither<gridclock::v1::RunRequest, gridclock::v1::StreamRunRequest>(
      data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  gridclock::FuzzRun(bytes);
  gridclock::FuzzStream(bytes);
  return 0;
}
