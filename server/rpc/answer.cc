#include "server/rpc/answer.h"

#include <utility>
#include <vector>

#include "proto/codec/request.h"
#include "server/rpc/buffer.h"
#include "server/rpc/operand_cursor.h"

namespace gridclock {
namespace {

// Below this a copy costs less than a slice of its own, and frees the arena at once.
constexpr std::uint64_t kCopied = 16 * 1024;

// A message that grows by text and by borrowed memory.
class Assembler {
 public:
  void Add(const std::string& text) { text_ += text; }
  void Copy(std::span<const std::byte> bytes) {
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void Lend(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
    FlushText();
    slices_.push_back(Borrow(bytes, owner));
  }
  grpc::ByteBuffer Finish() {
    FlushText();
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  void FlushText() {
    if (!text_.empty()) slices_.emplace_back(text_);
    text_.clear();
  }

  std::string text_;
  std::vector<grpc::Slice> slices_;
};

void AddBytes(const Backend& backend, const std::shared_ptr<const ActiveJob>& job,
              const JobOutput& output, Assembler* out) {
  OperandCursor cursor(output.value, output.memory);
  while (cursor.left() > 0) {
    const auto bytes = backend.memory(cursor.Next(cursor.left()));
    if (bytes.size() <= kCopied) {
      out->Copy(bytes);
    } else {
      out->Lend(bytes, job);
    }
  }
}

}  // namespace

grpc::ByteBuffer EncodeRunResponse(const Backend& backend,
                                   const std::shared_ptr<const ActiveJob>& job,
                                   const v1::RunSummary& summary, const Outcome& outcome) {
  Assembler out;
  out.Add(EncodeSummaryField(summary));
  const std::vector<JobOutput>& outputs = job->job().outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    OutputFrame frame;
    frame.output = &outputs[i];
    if (i < outcome.outputs.size()) frame.checksum = outcome.outputs[i].checksum;
    const bool returned = outputs[i].sink == SinkKind::kInline;
    if (returned) frame.data_bytes = WireBytes(outputs[i].value);
    out.Add(EncodeOutputFrame(frame));
    if (returned) AddBytes(backend, job, outputs[i], &out);
  }
  return out.Finish();
}

std::string Flatten(const grpc::ByteBuffer& buffer) {
  const MessageView view(buffer);
  std::string out;
  out.reserve(buffer.Length());
  for (const auto& slice : view.slices()) {
    out.append(reinterpret_cast<const char*>(slice.data()), slice.size());
  }
  return out;
}

}  // namespace gridclock
