#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "client/cpp/attempt.h"
#include "client/cpp/messages.h"
#include "proto/types/job.h"

namespace gridclock {
namespace {

// What goes up: the header, then the chunks of every input in order. Touched by the writing side
// alone.
class Upload {
 public:
  explicit Upload(const AttemptContext& context)
      : call_(context.call),
        chunk_bytes_(context.chunk_bytes),
        header_(EncodeHeader(context.call, context.request_id,
                             std::min(kHeaderPiece, context.chunk_bytes))) {}

  // The next message, or nothing when all are sent. `sent` counts tensor bytes.
  bool Next(Loan& loan, grpc::ByteBuffer* out, std::uint64_t* sent) {
    if (piece_ < header_.size()) {
      out->Swap(&header_[piece_++]);
      return true;
    }
    for (; input_ < call_.inputs.size(); NextInput()) {
      const CallInput& input = call_.inputs[input_];
      if (input.generator.has_value()) continue;
      for (; tensor_ < input.bytes.size(); ++tensor_, at_ = 0) {
        const auto rest = input.bytes[tensor_].subspan(at_);
        if (rest.empty()) continue;
        const auto chunk = rest.first(std::min<std::size_t>(rest.size(), chunk_bytes_));
        *out = EncodeChunk(input.name, offset_, chunk, loan);
        at_ += chunk.size();
        offset_ += chunk.size();
        *sent += chunk.size();
        return true;
      }
    }
    return false;
  }

 private:
  void NextInput() {
    ++input_;
    tensor_ = at_ = 0;
    offset_ = 0;
  }

  const RunCall& call_;
  const std::uint64_t chunk_bytes_;
  std::vector<grpc::ByteBuffer> header_;
  std::size_t piece_ = 0, input_ = 0, tensor_ = 0, at_ = 0;
  std::uint64_t offset_ = 0;  // In the operand's bytes.
};

// What comes down. Touched by the reading side alone.
class Download {
 public:
  Download(const RunCall& call, const RunEvents& events) : call_(call), events_(events) {}

  absl::Status Take(grpc::ByteBuffer& buffer) {
    GC_ASSIGN_OR_RETURN(const IncomingMessage in, IncomingMessage::Read(buffer));
    if (in.is_chunk()) return TakeChunk(in);
    const v1::StreamRunResponse& message = in.message();
    if (message.has_output()) return TakeOutput(message.output());
    if (message.has_summary()) {
      result_.summary = message.summary();
      has_summary_ = true;
    }
    if (message.has_accepted() && events_.accepted) events_.accepted(message.accepted());
    if (message.has_samples() && events_.samples) events_.samples(message.samples());
    return absl::OkStatus();
  }

  std::uint64_t received() const { return received_; }

  // All that was promised has come, or why not.
  absl::StatusOr<RunResult> Finish(const absl::Status& status) {
    if (!status.ok()) return has_summary_ ? WithSummary(status, result_.summary) : status;
    if (!has_summary_) return Broken("the stream ended without a summary");
    if (!places_.empty()) GC_RETURN_IF_ERROR(CheckComplete());
    return std::move(result_);
  }

 private:
  absl::Status TakeOutput(const v1::Output& message) {
    if (!result_.outputs.empty()) GC_RETURN_IF_ERROR(CheckComplete());
    std::span<std::byte> place;
    GC_ASSIGN_OR_RETURN(CallOutput output, DecodeOutput(message, events_, &place));
    if (IsReturned(call_, output.name)) {
      GC_RETURN_IF_ERROR(EnsurePlace(WireBytes(output.value), &output, &place));
      output.bytes = place;
    }
    places_.push_back(place);
    result_.outputs.push_back(std::move(output));
    filled_ = 0;
    return absl::OkStatus();
  }

  absl::Status TakeChunk(const IncomingMessage& in) {
    const ChunkView& chunk = in.chunk();
    if (result_.outputs.empty() || result_.outputs.back().name != chunk.name) {
      return Broken(absl::StrCat("a chunk of '", chunk.name, "' that was not announced"));
    }
    const std::span<std::byte> place = places_.back();
    if (chunk.offset != filled_ || chunk.size > place.size() - filled_) {
      return Broken(absl::StrCat("a chunk of '", chunk.name, "' at ", chunk.offset, ", ",
                                 chunk.size, " bytes, where ", filled_, " of ", place.size(),
                                 " have come"));
    }
    in.CopyChunk(place.data() + filled_, ReuseOf(place.size()));
    filled_ += chunk.size;
    received_ += chunk.size;
    return absl::OkStatus();
  }

  absl::Status CheckComplete() const {
    const CallOutput& output = result_.outputs.back();
    if (filled_ == output.bytes.size()) return absl::OkStatus();
    return Broken(absl::StrCat("output '", output.name, "' ended after ", filled_, " of ",
                               output.bytes.size(), " bytes"));
  }

  const RunCall& call_;
  const RunEvents& events_;
  RunResult result_;
  std::vector<std::span<std::byte>> places_;  // One for each output.
  std::uint64_t filled_ = 0;                  // Of the last output.
  std::uint64_t received_ = 0;
  bool has_summary_ = false;
};

// Writes and reads go on at the same time, each in its own chain of callbacks. Frees itself when
// the call has ended and all borrowed slices are back.
class StreamAttempt final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  StreamAttempt(const AttemptContext& context, AttemptDone done)
      : events_(context.events),
        rpc_(std::move(context.rpc)),
        done_(std::move(done)),
        upload_(context),
        download_(context.call, context.events),
        loan_(new Loan([this] { Return(); })) {}

  void Start(grpc::GenericStub& stub) {
    stub.PrepareBidiStreamingCall(rpc_.get(), "/gridclock.v1.KernelService/StreamRun", {}, this);
    StartRead(&in_);
    Write();
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return;  // The call is over; its status says why.
    Tell();
    Write();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (failure_.ok()) {
      failure_ = Receive();
      // What follows is read and dropped until the end: an early stop would leave the call open.
      if (!failure_.ok()) rpc_->TryCancel();
    }
    in_.Clear();
    StartRead(&in_);
  }

  void OnDone(const grpc::Status& status) override {
    result_ = download_.Finish(failure_.ok() ? ToStatus(status) : failure_);
    // The stream keeps unsent slices for as long as the context lives.
    out_.Clear();
    rpc_.reset();
    loan_->End();
  }

 private:
  void Write() {
    std::uint64_t sent = 0;
    if (!upload_.Next(*loan_, &out_, &sent)) {
      StartWritesDone();
      return;
    }
    sent_ += sent;
    StartWrite(&out_);
  }

  absl::Status Receive() {
    {
      MutexLock lock(events_mutex_);
      GC_RETURN_IF_ERROR(download_.Take(in_));
      received_ = download_.received();
    }
    Tell();
    return absl::OkStatus();
  }

  void Tell() {
    if (!events_.moved) return;
    MutexLock lock(events_mutex_);
    events_.moved(sent_, received_);
  }

  void Return() {
    const AttemptDone done = std::move(done_);
    absl::StatusOr<RunResult> result = std::move(result_);
    delete this;
    done(std::move(result));
  }

  const RunEvents& events_;
  std::shared_ptr<grpc::ClientContext> rpc_;
  AttemptDone done_;
  Upload upload_;
  Download download_;
  Mutex events_mutex_;  // Events come one at a time, though both sides tell them.
  std::atomic<std::uint64_t> sent_{0}, received_{0};
  grpc::ByteBuffer in_, out_;
  absl::Status failure_;
  absl::StatusOr<RunResult> result_;
  Loan* loan_;
};

}  // namespace

void StartStream(grpc::GenericStub& stub, const AttemptContext& context, AttemptDone done) {
  (new StreamAttempt(context, std::move(done)))->Start(stub);
}

}  // namespace gridclock
