#include "server/rpc/outbox.h"

#include <algorithm>
#include <utility>

#include "proto/codec/request.h"
#include "server/rpc/buffer.h"

namespace gridclock {
namespace {

constexpr std::size_t kSamplesPerMessage = 16 * 1024;
constexpr std::uint64_t kMostChunk = 1024 * 1024;  // The contract's, whatever is received here.

}  // namespace

void Outbox::Accept(const Job& job, const AcceptedInfo& info) {
  v1::Accepted& accepted = accepted_.emplace();
  accepted.set_queue_position(info.queue_position);
  accepted.set_expected_wait_seconds(absl::ToDoubleSeconds(info.expected_wait));
  accepted.set_device(job.device);
  accepted.set_variant(job.variant);
}

void Outbox::AddSamples(std::int64_t first, std::span<const double> samples_ns, bool warmup) {
  const auto follows = [&](const Samples& last) {
    return last.warmup == warmup &&
           last.first + static_cast<std::int64_t>(last.values.size()) == first &&
           last.values.size() + samples_ns.size() <= kSamplesPerMessage;
  };
  if (samples_.empty() || !follows(samples_.back())) samples_.push_back({first, warmup, {}});
  std::vector<double>& values = samples_.back().values;
  values.insert(values.end(), samples_ns.begin(), samples_ns.end());
  sample_count_ += samples_ns.size();
}

void Outbox::AddOutputs(std::shared_ptr<const ActiveJob> job, const Outcome& outcome) {
  job_ = std::move(job);
  results_ = outcome.outputs;
}

void Outbox::Clear() {
  accepted_.reset();
  samples_.clear();
  sample_count_ = 0;
  summary_.reset();
  cursor_.reset();
  job_.reset();
}

std::uint64_t Outbox::held_bytes() const {
  return sample_count_ * sizeof(double) + samples_.size() * sizeof(Samples) +
         (summary_ ? summary_->SpaceUsedLong() : 0);
}

std::optional<grpc::ByteBuffer> Outbox::Next() {
  v1::StreamRunResponse message;
  if (accepted_) {
    *message.mutable_accepted() = *std::exchange(accepted_, std::nullopt);
    return ToBuffer(message.SerializeAsString());
  }
  if (!samples_.empty()) {
    const Samples& samples = samples_.front();
    message.mutable_samples()->set_first(samples.first);
    message.mutable_samples()->set_warmup(samples.warmup);
    message.mutable_samples()->mutable_samples_ns()->Add(samples.values.begin(),
                                                         samples.values.end());
    sample_count_ -= samples.values.size();
    samples_.pop_front();
    return ToBuffer(message.SerializeAsString());
  }
  if (auto output = NextOutput()) return output;
  if (!summary_) return std::nullopt;
  return ToBuffer(EncodeStreamSummary(*std::exchange(summary_, std::nullopt)));
}

// The head of an output, or a chunk of the one whose head was sent.
std::optional<grpc::ByteBuffer> Outbox::NextOutput() {
  if (job_ == nullptr) return std::nullopt;
  const std::vector<JobOutput>& outputs = job_->job().outputs;
  if (cursor_ && cursor_->left() > 0) return NextChunk(outputs[output_ - 1]);
  if (output_ == outputs.size()) {
    cursor_.reset();
    job_.reset();
    return std::nullopt;
  }
  const JobOutput& output = outputs[output_];
  const auto checksum = output_ < results_.size() ? results_[output_].checksum : std::nullopt;
  cursor_.reset();
  if (output.sink == SinkKind::kStream) cursor_.emplace(output.value, output.memory);
  ++output_;
  return ToBuffer(EncodeStreamOutput(output, checksum));
}

// Up to chunk_bytes, borrowed from the arena; of a list perhaps in many pieces.
grpc::ByteBuffer Outbox::NextChunk(const JobOutput& output) {
  const auto limit = static_cast<std::uint64_t>(backend_.limits.chunk_bytes);
  const std::uint64_t size = std::min({cursor_->left(), kMostChunk, limit});
  std::vector<grpc::Slice> slices;
  slices.emplace_back(EncodeStreamChunkFrame(output.name, cursor_->position(), size));
  for (std::uint64_t left = size; left > 0;) {
    const MemoryRange piece = cursor_->Next(left);
    slices.push_back(Borrow(backend_.memory(piece), job_));
    left -= piece.size;
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace gridclock
