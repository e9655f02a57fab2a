#include "server/rpc/unary_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/rpc/parse.h"
#include "server/rpc/status.h"

namespace gridclock {
namespace {

absl::Duration StallLimit(const Backend& backend) {
  return absl::Seconds(backend.limits.stream_stall_seconds);
}

}  // namespace

Intake LargeRequests(const Backend& backend) {
  return {backend.requests, StallLimit(backend)};
}

Intake SmallRequests(const Backend& backend, ReadGate& gate) {
  constexpr absl::Duration kWithItsHeaders = absl::Seconds(2);
  return {gate, std::min(kWithItsHeaders, StallLimit(backend))};
}

UnaryCall::UnaryCall(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context,
                     Intake intake)
    : backend_(backend), context_(context), meter_(backend, method, context), intake_(intake) {}

void UnaryCall::Begin() {
  self_ = shared_from_this();
  if (absl::Status status = CheckMetadata(context_, backend_.limits); !status.ok()) {
    return End(status);
  }
  auto principal = Authorize();
  if (!principal.ok()) return End(principal.status());
  principal_ = *std::move(principal);
  backend_.stalls.Add(weak_from_this());
  Enter();
}

void UnaryCall::Enter() {
  switch (intake_.gate.Enter(principal_, weak_from_this())) {
    case ReadGate::Entry::kNow:
      if (!TakeTurn()) intake_.gate.Leave(principal_);
      return;
    case ReadGate::Entry::kLater:
      return;
    case ReadGate::Entry::kFull:
      if (Interrupt()) End(intake_.gate.Full());
  }
}

bool UnaryCall::TakeTurn() {
  // Under the lock, because gRPC's side of a call that has ended is gone.
  const MutexLock lock(mutex_);
  if (phase_ != Phase::kEntering) return false;
  phase_ = Phase::kReading;
  give_up_ = backend_.clock.Now() + intake_.limit;
  StartRead(&request_);
  return true;
}

void UnaryCall::OnReadDone(bool ok) {
  intake_.gate.Leave(principal_);
  if (!Interrupt()) return;
  received_ = request_.Length();
  if (context_.IsCancelled()) return End(CancelReason(context_, meter_.age()));
  if (!ok) return End(absl::UnimplementedError("want one request, got the end of the stream"));
  absl::Status status = CheckMessageBytes(request_, backend_.limits);
  if (status.ok()) status = Accept(request_);
  request_.Clear();
  if (!status.ok()) End(status);
}

bool UnaryCall::Interrupt() {
  const MutexLock lock(mutex_);
  if (phase_ != Phase::kEntering && phase_ != Phase::kReading) return false;
  phase_ = Phase::kServing;
  give_up_ = absl::InfiniteFuture();
  return true;
}

void UnaryCall::OnCancel() {
  if (Interrupt()) return End(CancelReason(context_, meter_.age()));
  Abandon();
}

void UnaryCall::CheckStall(absl::Time now) {
  {
    const MutexLock lock(mutex_);
    if (now < give_up_) return;
    // An answer that the client does not take. The context lives until OnDone is over.
    if (phase_ == Phase::kAnswering) {
      give_up_ = absl::InfiniteFuture();
      return context_.TryCancel();
    }
  }
  if (Interrupt()) End(TooSlow(intake_.limit));
}

void UnaryCall::Drain(const absl::Status& why, bool grace_over) {
  constexpr absl::Duration kOnItsWay = absl::Seconds(1);
  if (!grace_over && backend_.clock.Now() - meter_.started() < kOnItsWay) return;
  if (Interrupt()) End(why);
}

void UnaryCall::Reply(grpc::ByteBuffer response) {
  response_.Swap(&response);
  meter_.Bytes(received_, response_.Length());
  meter_.Finish(absl::OkStatus());
  NoteAnswer();
  StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
}

void UnaryCall::End(const absl::Status& status, const CallSubject& subject,
                    const v1::RunSummary* summary) {
  meter_.Bytes(received_, 0);
  meter_.Finish(status, subject);
  NoteAnswer();
  Finish(EndOf(context_, status, summary));
}

void UnaryCall::NoteAnswer() {
  const MutexLock lock(mutex_);
  phase_ = Phase::kAnswering;
  give_up_ = backend_.clock.Now() + StallLimit(backend_);
}

void UnaryCall::OnDone() {
  {
    const MutexLock lock(mutex_);
    phase_ = Phase::kDone;
    give_up_ = absl::InfiniteFuture();
  }
  self_.reset();
}

}  // namespace gridclock
