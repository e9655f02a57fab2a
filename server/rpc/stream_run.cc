#include "server/rpc/stream_run.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "server/core/read_gate.h"
#include "server/rpc/auth.h"
#include "server/rpc/buffer.h"
#include "server/rpc/call.h"
#include "server/rpc/client_wait.h"
#include "server/rpc/outbox.h"
#include "server/rpc/parse.h"
#include "server/rpc/request_lease.h"
#include "server/rpc/stall_watch.h"
#include "server/rpc/status.h"
#include "server/rpc/upload.h"

namespace gridclock {
namespace {

using grpc::ByteBuffer;

absl::Status BadOrder(absl::string_view field, absl::string_view text) {
  return WithReason(InvalidField(field, text), "BAD_CHUNK");
}

// Three things go on at once: the client's messages (one read at a time; what only they touch needs
// no lock), the job (JobListener), and our messages (one write at a time, from the outbox). The
// scheduler and gRPC are called without the lock.
class StreamCall final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>,
                         public JobListener,
                         public ReadGate::Reader,
                         public StallWatch::Stream,
                         public std::enable_shared_from_this<StreamCall> {
 public:
  StreamCall(Backend& backend, grpc::CallbackServerContext& context)
      : backend_(backend),
        context_(context),
        meter_(backend, RpcMethod::kStreamRun, context),
        decoder_(RequestLimitsOf(backend.limits)),
        outbox_(backend),
        wait_(backend.limits, meter_.started()) {}

  ~StreamCall() override { backend_.stream_memory.Return(principal_, held_header_ + held_outbox_); }

  void Begin() {
    self_ = shared_from_this();
    if (absl::Status status = CheckMetadata(context_, backend_.limits); !status.ok()) {
      return Fail(status);
    }
    auto principal = backend_.authenticator.Authorize(context_, Role::kRun);
    if (!principal.ok()) return Fail(principal.status());
    principal_ = *std::move(principal);
    backend_.stalls.Add(weak_from_this());
    Read();
  }

  // ---- The client's messages. ----
  void OnReadDone(bool ok) override {
    gate_->Leave(principal_);
    {
      const MutexLock lock(mutex_);
      hearing_ = ok ? Hearing::kTaking : Hearing::kNothing;
      Moved(ok ? incoming_.Length() : 0);
    }
    const absl::Status status = ok ? TakeMessage() : TakeEnd();
    if (!status.ok()) return Fail(status);
    if (!ok) Pump();  // The status may have waited for this.
  }
  bool TakeTurn() override {
    // Under the lock, because gRPC's side of a stream that has ended is gone.
    const MutexLock lock(mutex_);
    if (finished_) return false;
    hearing_ = Hearing::kReading;
    NoteWait();
    StartRead(&incoming_);
    return true;
  }

  // ---- The job. ----
  void OnAccepted(const Job& job, const AcceptedInfo& info) override {
    {
      const MutexLock lock(mutex_);
      job_ = job.id;
      outbox_.Accept(job, info);
    }
    Pump();
    if (const absl::Status status = Receive(job.id); !status.ok()) Fail(status);
  }
  void OnSamples(std::int64_t first, std::span<const double> samples_ns, bool warmup) override {
    absl::Status held;
    {
      const MutexLock lock(mutex_);
      if (end_) return;
      outbox_.AddSamples(first, samples_ns, warmup);
      held = CountHeld();
    }
    if (!held.ok()) return Fail(held);
    Pump();
  }
  void OnFinished(JobResult result) override {
    {
      const MutexLock lock(mutex_);
      job_over_ = true;
      over_since_ = backend_.clock.Now();
      if (result.outcome && active_ != nullptr) Say(result);
      active_.reset();
      if (!end_) end_ = result.status;
    }
    Pump();
  }

  // ---- Our messages. ----
  void OnWriteDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      Moved(outgoing_.Length());
    }
    if (ok) return Pump();
    Fail(CancelReason(context_, meter_.age()));
  }
  void OnCancel() override {
    if (!HasSaidAll()) Fail(CancelReason(context_, meter_.age()));
  }
  void OnDone() override { self_.reset(); }

  void CheckStall(absl::Time now) override {
    absl::Status why;
    Pump();
    {
      const MutexLock lock(mutex_);
      if ((end_ && !writing_) || !wait_.TooLong(now)) return;
      why = wait_.Why(writing_ ? "read" : "send");
      if (!end_ || end_->ok()) LogStall(why);
    }
    CutOff(why);
  }

  void CutOff(const absl::Status& why) override {
    Fail(why);
    // A write that the client does not take would hold back the status behind it for ever. Under
    // the lock, because the context lives as long as a write is not done, and not longer.
    const MutexLock lock(mutex_);
    if (writing_) context_.TryCancel();
  }

  std::optional<JobView> Sending(absl::Time now) override {
    const MutexLock lock(mutex_);
    if (!sent_ || !(writing_ || outbox_.has_summary())) return std::nullopt;
    JobView job = *sent_;
    job.age += now - over_since_;
    return job;
  }

  void Drain(const absl::Status& why, bool grace_over) override {
    bool ends = false;
    {
      const MutexLock lock(mutex_);
      ends = !finished_ && (grace_over || (job_ == 0 && !end_));
    }
    if (ends) return Fail(why);
    Pump();  // One that has all may have waited for its client's end.
  }

 private:
  // Taking: a message is looked at; the next is read behind it, or it is one too many.
  enum class Hearing : std::uint8_t { kNothing, kTaking, kReading };

  // What comes until all inputs are here takes turns with other requests of the client. Then only
  // the end should come, which may be long in coming and hold up nothing: not the client's other
  // requests, and not this call, which is answered unheard where there is no place for it.
  void Read() ABSL_LOCKS_EXCLUDED(mutex_) {
    incoming_.Clear();
    gate_ = started_ ? &backend_.stream_ends : &backend_.requests;
    const bool in_the_middle = !started_ && received_bytes_ > 0;
    switch (gate_->Enter(principal_, weak_from_this(), in_the_middle)) {
      case ReadGate::Entry::kNow:
        if (!TakeTurn()) gate_->Leave(principal_);
        return;
      case ReadGate::Entry::kLater:
        return HearNothing();
      case ReadGate::Entry::kFull:
        if (!started_) return Fail(gate_->Full());
        HearNothing();
    }
  }

  // Until its turn comes, which may be here already.
  void HearNothing() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (hearing_ == Hearing::kTaking) hearing_ = Hearing::kNothing;
    }
    Pump();  // The status may have waited for more.
  }

  void Moved(std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    wait_.Moved(bytes, backend_.clock.Now());
    NoteWait();
  }

  // Until all inputs are here it is the client that is waited for, and while it is to read.
  void NoteWait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool reading = hearing_ == Hearing::kReading;
    wait_.Set((reading && !received_all_) || writing_, backend_.clock.Now());
  }

  absl::Status TakeMessage() {
    received_bytes_ += incoming_.Length();
    GC_RETURN_IF_ERROR(CheckMessageBytes(incoming_, backend_.limits));
    const MessageView message(incoming_);
    GC_ASSIGN_OR_RETURN(const auto part, decoder_.Decode(message.slices()));
    const auto* chunk = std::get_if<StreamChunk>(&part);
    if (chunk != nullptr) return TakeChunk(*chunk, message.slices());
    if (header_ended_) {
      return BadOrder("header", "want all of it before the first chunk, got a part behind one");
    }
    GC_RETURN_IF_ERROR(backend_.stream_memory.Take(principal_, incoming_.Length()));
    held_header_ += incoming_.Length();
    Read();
    return absl::OkStatus();
  }

  absl::Status TakeChunk(const StreamChunk& chunk, Slices message) {
    if (upload_) {
      GC_RETURN_IF_ERROR(upload_->Take(chunk, message));
      return Continue();
    }
    if (decoder_.header().empty()) {
      return BadOrder("chunk", "want the header first, got a chunk");
    }
    // Kept in incoming_, and read on from only when there is memory to put it in.
    first_chunk_ = chunk;
    return EndHeader();
  }

  // The client has sent all that it will.
  absl::Status TakeEnd() {
    if (context_.IsCancelled()) return CancelReason(context_, meter_.age());
    client_ended_ = true;
    if (header_ended_) return CheckEnded();
    if (decoder_.header().empty()) {
      return BadOrder("header", "want one, got the end of the stream");
    }
    return EndHeader();
  }

  absl::Status CheckEnded() const {
    if (!client_ended_ || !upload_ || upload_->complete()) return absl::OkStatus();
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat("the stream ended early: ", upload_->Missing())),
        "BAD_CHUNK");
  }

  // The header is whole: from here on there is a job.
  absl::Status EndHeader() {
    header_ended_ = true;
    GC_ASSIGN_OR_RETURN(
        run_, EnterRequest(context_, backend_, meter_, principal_, decoder_.header().Finish()));
    GC_RETURN_IF_ERROR(Lease());
    GC_ASSIGN_OR_RETURN(Job job, AdmitRequest(backend_, run_.request));
    GC_ASSIGN_OR_RETURN(const JobId id,
                        backend_.scheduler.Submit(std::move(job), shared_from_this(),
                                                  /*wait_for_memory=*/true));
    return NoteJob(id);
  }

  // Under the lock, because End() may come at the same time, from a cancellation.
  absl::Status Lease() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    if (end_) return *end_;
    request_id_ = run_.request.request_id;
    return LeaseRequestId(backend_, run_, lease_).status();
  }

  // Where the job waits for memory its id is known before OnAccepted.
  absl::Status NoteJob(JobId id) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::optional<absl::Status> why;
    {
      const MutexLock lock(mutex_);
      job_ = id;
      if (!job_over_) why = end_;
    }
    if (why) backend_.scheduler.Cancel(id, *why);
    return absl::OkStatus();
  }

  // There is memory: the bytes that have come go there, then the rest.
  absl::Status Receive(JobId id) {
    auto active = backend_.scheduler.Active(id);
    if (active == nullptr) return absl::OkStatus();  // Over already; OnFinished says why.
    {
      const MutexLock lock(mutex_);
      active_ = active;
    }
    CopyInline(backend_, run_, decoder_.header().data(), active->job());
    upload_.emplace(backend_.table, backend_.memory, active,
                    [this, id, program = active->job().program != nullptr](
                        const InputArrival& part) { Tell(id, program, part); });
    id_ = id;
    if (first_chunk_) {
      const MessageView message(incoming_);
      GC_RETURN_IF_ERROR(upload_->Take(*first_chunk_, message.slices()));
    }
    return Continue();
  }

  void Tell(JobId id, bool program, const InputArrival& part) const {
    if (!program)
      backend_.scheduler.Arrived(id, part);
    else if (backend_.modules->arrivals != nullptr)
      backend_.modules->arrivals->Tell(id, part);
  }

  // After bytes were taken: start the job if that was all, and read on in any case, because a chunk
  // too many is an error.
  absl::Status Continue() {
    GC_RETURN_IF_ERROR(CheckEnded());
    const bool complete = upload_->complete();
    if (complete && !started_) {
      {
        const MutexLock lock(mutex_);
        received_all_ = true;
        NoteWait();
      }
      started_ = true;
      backend_.scheduler.Start(id_);
    }
    if (!client_ended_) Read();
    return absl::OkStatus();
  }

  // The client may not hear of it: what it does not read stands before the status.
  void LogStall(const absl::Status& why) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Log(LogLevel::kWarning, "stream_stalled",
        {{"client", principal_},
         {"peer", context_.peer()},
         {"job", absl::StrCat(job_)},
         {"request_id", request_id_},
         {"trace_id", TraceId(meter_.trace())},
         {"reason", std::string(why.message())}});
  }

  void Say(JobResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (end_) return;
    const Job& job = active_->job();
    v1::RunSummary summary;
    Summarize(job, *result.outcome, backend_.clock.Now(), &summary);
    if (result.status.ok()) {
      outbox_.AddOutputs(active_, *result.outcome);
      sent_ = ViewOf(job, JobView::State::kSending, over_since_);
    }
    outbox_.AddSummary(std::move(summary));
    if (const absl::Status held = CountHeld(); !held.ok()) {
      end_ = held;
      outbox_.Clear();
    }
  }

  // Holds what waits for the client against the budget of all streams.
  absl::Status CountHeld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::uint64_t now = outbox_.held_bytes();
    if (now > held_outbox_) {
      GC_RETURN_IF_ERROR(backend_.stream_memory.Take(principal_, now - held_outbox_));
    } else {
      backend_.stream_memory.Return(principal_, held_outbox_ - now);
    }
    held_outbox_ = now;
    return absl::OkStatus();
  }

  // Ends the stream with `status`. A job that lives is cancelled; its end ends the stream.
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    JobId cancel = 0;
    {
      const MutexLock lock(mutex_);
      if (!end_ || end_->ok()) end_ = status;
      outbox_.Clear();
      CountHeld().IgnoreError();  // It became less.
      if (job_ != 0 && !job_over_) cancel = job_;
    }
    if (cancel != 0) backend_.scheduler.Cancel(cancel, status);
    Pump();
  }

  // Sends the next message, or the status behind the last one.
  void Pump() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::optional<absl::Status> finish;
    {
      const MutexLock lock(mutex_);
      if (writing_ || finished_) return;
      if (auto next = outbox_.Next()) {
        outgoing_ = *std::move(next);
        sent_bytes_ += outgoing_.Length();
        CountHeld().IgnoreError();  // It became less.
        writing_ = true;
        NoteWait();
      } else if (end_ && (job_ == 0 || job_over_) && !MayHearMore()) {
        finished_ = true;
        finish = end_;
      } else {
        return;
      }
    }
    if (finish) return End(*finish);
    StartWrite(&outgoing_);
  }

  // All but the status, which is OK. It then waits for the client's end alone.
  bool HasSaidAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    return end_ && end_->ok() && job_over_ && !writing_;
  }

  // A client that has sent all that it should may be about to send too much, which is an error:
  // it hears OK when it has ended its side, or has been silent for a while.
  bool MayHearMore() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    constexpr absl::Duration kSilence = absl::Seconds(1);
    return end_->ok() && hearing_ != Hearing::kNothing && !backend_.draining() &&
           backend_.clock.Now() - over_since_ < kSilence;
  }

  void End(const absl::Status& status) {
    CallSubject subject = {.client = principal_};
    {
      const MutexLock lock(mutex_);
      if (status.ok())
        lease_.Finish(nullptr);
      else
        lease_.Release();
      // Nobody writes to them any more: the stream was told to finish.
      subject.request_id = request_id_;
      subject.job = job_;
    }
    meter_.Bytes(received_bytes_, sent_bytes_);
    meter_.Finish(status, subject);
    Finish(EndOf(context_, status));
  }

  Backend& backend_;
  grpc::CallbackServerContext& context_;
  CallMeter meter_;
  std::string principal_;

  // Of the client's messages.
  StreamRunDecoder decoder_;
  ByteBuffer incoming_;
  DecodedRun run_;
  std::optional<StreamChunk> first_chunk_;
  std::optional<Upload> upload_;  // Once there is memory.
  JobId id_ = 0;                  // Of the job that has it.
  bool header_ended_ = false, client_ended_ = false, started_ = false;
  ReadGate* gate_ = nullptr;                       // Of the read that is under way.
  std::atomic<std::uint64_t> received_bytes_ = 0;  // A drain may end the stream meanwhile.
  std::uint64_t held_header_ = 0;                  // Of the budget of streams.

  Mutex mutex_;
  RequestLease lease_ ABSL_GUARDED_BY(mutex_);
  std::string request_id_ ABSL_GUARDED_BY(mutex_);
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  JobId job_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const ActiveJob> active_ ABSL_GUARDED_BY(mutex_);  // Shared with the scheduler.
  bool job_over_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<JobView> sent_ ABSL_GUARDED_BY(mutex_);  // As its job was when it was over.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  Hearing hearing_ ABSL_GUARDED_BY(mutex_) = Hearing::kNothing;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool received_all_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time over_since_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t held_outbox_ = 0;  // Guarded by mutex_, but for the destructor.
  ClientWait wait_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t sent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  ByteBuffer outgoing_;  // Of the write that is under way.

  // gRPC knows this call by its bare address until OnDone; the scheduler shares it.
  std::shared_ptr<StreamCall> self_;
};

}  // namespace

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* ServeStreamRun(
    Backend& backend, grpc::CallbackServerContext* context) {
  auto call = std::make_shared<StreamCall>(backend, *context);
  call->Begin();
  return call.get();
}

}  // namespace gridclock
