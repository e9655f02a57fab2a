#include "server/fleet/compiler.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/frames.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "proto/codec/module.h"
#include "proto/types/status_page.h"
#include "server/core/compile_queue.h"
#include "server/core/scheduler.h"
#include "server/fleet/compiler_answer.h"
#include "server/fleet/runnable.h"
#include "server/fleet/worker_output.h"
#include "server/fleet/worker_process.h"

namespace gridclock {
namespace {

// What a child may write, and the frame around it.
constexpr std::size_t kMostAnswer = 48 * 1024 * 1024;
// The largest cubin that a compile gives (WorkLimits), and what is around it.
constexpr std::size_t kMostOrder = 17 * 1024 * 1024;
constexpr std::size_t kAroundOrder = 64;  // Its id and the message around it.
// How often the thread looks when nothing else happens.
constexpr absl::Duration kTurn = absl::Milliseconds(250);

absl::Status OrderTooLarge(std::size_t bytes) {
  return WithReason(
      absl::ResourceExhaustedError(absl::StrCat("want an order to the compiler of at most ",
                                                kMostOrder, " bytes, got one of ", bytes)),
      "TOO_LARGE");
}

// An order from its arrival to its answer. One of the two answers is set.
struct Order {
  std::string principal = {}, id = {};
  ModuleKind kind = ModuleKind::kCuda;
  bool fetch_only = false;
  worker::v1::CompilerOrder message = {};
  // What is disassembled; copied to the message when that is sent. The table of modules has it too.
  std::shared_ptr<const ModuleCode> module = nullptr;
  Compiler::Done done = {};
  Compiler::TextDone text_done = {};
  absl::Time sent = absl::InfiniteFuture();
  absl::Duration missed = {};  // By the thread, until it was sent.

  void Fail(const absl::Status& status) {
    if (done) done(status);
    if (text_done) text_done(status);
  }
};

// A process that lives, with the link to it.
struct Incarnation {
  WorkerProcess process;
  UniqueFd link;
  FrameReader reader{kMostAnswer};
  std::string unsent = {};
  absl::Time spawned;
  bool ready = false;
};

class CompilerThread final : public Compiler {
 public:
  CompilerThread(CompilerOptions options, const Limits& limits, const Clock& clock,
                 ModuleCache* cache, CompileObserver& observer, UniqueFd wake)
      : options_(std::move(options)),
        limits_(limits),
        clock_(clock),
        cache_(cache),
        observer_(observer),
        wake_(std::move(wake)),
        supervisor_(options_.supervisor, options_.seed),
        queue_(limits) {}
  ~CompilerThread() override { CompilerThread::Stop(); }

  void Start() override {
    thread_ = std::thread([this] { Run(); });
  }
  void Stop() override {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    Wake();
    if (thread_.joinable()) thread_.join();
  }

  Ticket Make(const std::string& principal, const std::string& id, ModuleSource source,
              Done done) override {
    Order order{.principal = principal, .id = id, .kind = source.kind, .done = std::move(done)};
    if (source.kind == ModuleKind::kCuda) {
      Encode(source, order.message.mutable_compile());
    } else {
      Encode(source, order.message.mutable_load());
    }
    return Post(std::move(order));
  }
  Ticket Fetch(const std::string& principal, const std::string& id, Done done) override {
    return Post({.principal = principal, .id = id, .fetch_only = true, .done = std::move(done)});
  }
  Ticket Disassemble(const std::string& principal, std::shared_ptr<const ModuleCode> module,
                     TextDone done) override {
    return Post(
        {.principal = principal, .module = std::move(module), .text_done = std::move(done)});
  }
  bool Forget(const std::string& principal, const std::string& id) override {
    return cache_ != nullptr && cache_->Remove(principal, id);
  }
  void Cancel(Ticket ticket) override {
    {
      const MutexLock lock(mutex_);
      cancelled_.push_back(ticket);
    }
    Wake();
  }

  CompilerFacts facts() const override {
    const MutexLock lock(mutex_);
    return facts_;
  }
  Usage usage() const override {
    const MutexLock lock(mutex_);
    return usage_;
  }

 private:
  void Wake() const {
    const std::uint64_t one = 1;
    // A counter that is full wakes as well.
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  }

  Ticket Post(Order order) ABSL_LOCKS_EXCLUDED(mutex_) {
    Ticket ticket = 0;
    std::optional<Order> refused;
    {
      const MutexLock lock(mutex_);
      ticket = next_ticket_++;
      if (stopping_)
        refused = std::move(order);
      else
        posted_.emplace_back(ticket, std::move(order));
    }
    if (refused) {
      refused->Fail(DrainingStatus());
    } else {
      Wake();
    }
    return ticket;
  }

  // ---- All below is the thread's own. ----

  void Run() {
    while (!Stopping()) {
      Respawn();
      TakeCalls();
      SendNext();
      NoteUsage();
      Wait();
      NoteLook();
      if (process_) Watch();
    }
    EndProcess();
    TakeCalls();
    FailAll(DrainingStatus());
  }

  bool Stopping() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    return stopping_;
  }

  void Respawn() {
    const absl::Time now = clock_.Now();
    if (process_ || now < next_spawn_) return;
    if (const absl::Status status = Spawn(); !status.ok()) {
      Log(LogLevel::kError, "compiler_not_started", {{"error", std::string(status.message())}});
      next_spawn_ = supervisor_.OnEnd(Supervisor::EndOfSpawn(status), now);
      const MutexLock lock(mutex_);
      facts_.lost = true;
    }
  }

  absl::Status Spawn() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return ErrnoToStatus(errno, "socketpair");
    }
    UniqueFd ours(ends[0]);
    const UniqueFd theirs(ends[1]);
    GC_ASSIGN_OR_RETURN(WorkerProcess process,
                        WorkerProcess::Spawn({.path = options_.path,
                                              .args = Arguments(),
                                              .environment = options_.environment,
                                              .link_fd = theirs.get()}));
    process_.emplace(Incarnation{
        .process = std::move(process), .link = std::move(ours), .spawned = clock_.Now()});
    return absl::OkStatus();
  }

  std::vector<std::string> Arguments() const {
    const auto whole = [](double value) { return static_cast<std::uint64_t>(value); };
    std::vector<std::string> args = {
        absl::StrCat("--seconds=", limits_.compile_seconds),
        absl::StrCat("--memory-bytes=", whole(limits_.compile_memory_bytes)),
        absl::StrCat("--log-bytes=", whole(limits_.compile_log_bytes)),
        absl::StrCat("--order-bytes=", kMostOrder)};
    if (!options_.cuda_home.empty()) args.push_back("--cuda-home=" + options_.cuda_home);
    return args;
  }

  // What is cancelled was posted before, so it is known once both lists are taken at once.
  void TakeCalls() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::deque<std::pair<Ticket, Order>> posted;
    std::vector<Ticket> cancelled;
    {
      const MutexLock lock(mutex_);
      posted.swap(posted_);
      cancelled.swap(cancelled_);
    }
    for (auto& [ticket, order] : posted) TakeOrder(ticket, std::move(order));
    for (const Ticket ticket : cancelled) TakeCancelled(ticket);
  }

  void TakeOrder(Ticket ticket, Order order) {
    if (cache_ != nullptr && order.done) {
      if (auto known = cache_->Read(order.principal, order.id); known.ok()) {
        return order.done(MadeModule{*std::move(known), ModuleOrigin::kDisk});
      }
    }
    if (order.fetch_only) return order.Fail(absl::NotFoundError(""));
    const std::size_t cubin = order.module != nullptr ? order.module->cubin.size() : 0;
    const std::size_t bytes = order.message.ByteSizeLong() + cubin + kAroundOrder;
    if (bytes > kMostOrder) return order.Fail(OrderTooLarge(bytes));
    if (const absl::Status status = queue_.Add(order.principal, ticket); !status.ok()) {
      return order.Fail(status);
    }
    orders_.emplace(ticket, std::move(order));
  }

  void TakeCancelled(Ticket ticket) {
    const auto found = orders_.find(ticket);
    if (found == orders_.end()) return;
    if (found->second.sent == absl::InfiniteFuture()) {
      Finish(ticket, absl::CancelledError("cancelled by the client"));
    } else if (process_) {
      worker::v1::ToCompiler message;
      message.set_cancel(ticket);
      AppendFrame(message.SerializeAsString(), &process_->unsent);
    }
  }

  void SendNext() {
    while (process_ && process_->ready) {
      const std::optional<Ticket> next = queue_.Next();
      if (!next) return;
      Order& order = orders_.at(*next);
      order.sent = clock_.Now();
      order.missed = missed_;
      worker::v1::ToCompiler message;
      *message.mutable_order() = std::move(order.message);
      if (order.module != nullptr) message.mutable_order()->set_disassemble(order.module->cubin);
      message.mutable_order()->set_id(*next);
      AppendFrame(message.SerializeAsString(), &process_->unsent);
    }
  }

  void NoteUsage() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    usage_ = {.waiting = queue_.waiting(), .running = queue_.running()};
  }

  void Wait() {
    std::vector<pollfd> polled = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    if (process_) {
      const short events = process_->unsent.empty() ? POLLIN : POLLIN | POLLOUT;
      polled.push_back({.fd = process_->link.get(), .events = events, .revents = 0});
      polled.push_back({.fd = process_->process.pidfd(), .events = POLLIN, .revents = 0});
      polled.push_back({.fd = process_->process.output_fd(), .events = POLLIN, .revents = 0});
    }
    const absl::Duration left = process_ ? kTurn : next_spawn_ - clock_.Now();
    poll(polled.data(), polled.size(),
         static_cast<int>(
             absl::ToInt64Milliseconds(std::clamp(left, absl::Milliseconds(1), kTurn))));
    std::uint64_t count = 0;
    if ((polled[0].revents & POLLIN) != 0) {
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof(count));
    }
  }

  void Watch() {
    output_.Drain(process_->process.output_fd());
    const bool alive = SendSome(process_->link.get(), process_->unsent);
    const StreamRead got = ReadSome(process_->link.get(), process_->reader);
    if (const absl::Status status = TakeFrames(); !status.ok()) {
      return Lose(status.message(), Supervisor::End::kItself);
    }
    if (!alive || got == StreamRead::kEnd) return Lose("it ended", Supervisor::End::kOutside);
    if (got == StreamRead::kNothing && IsHung())
      Lose("it did not answer in time", Supervisor::End::kItself);
  }

  // What kept this thread from looking, as a machine that stood still, may have kept the compiler
  // from its answer: that time does not count.
  void NoteLook() {
    const absl::Time now = clock_.Now();
    missed_ += std::max(now - std::exchange(looked_, now) - 2 * kTurn, absl::ZeroDuration());
  }

  bool IsHung() const {
    const absl::Time now = clock_.Now();
    if (!process_->ready) return now - process_->spawned > options_.start_limit;
    const absl::Duration most = absl::Seconds(limits_.compile_seconds) + options_.answer_grace;
    return std::any_of(orders_.begin(), orders_.end(), [&](const auto& order) {
      return now - order.second.sent > most + missed_ - order.second.missed;
    });
  }

  absl::Status TakeFrames() {
    while (true) {
      GC_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, process_->reader.Next());
      if (!bytes) return absl::OkStatus();
      worker::v1::FromCompiler message;
      if (!message.ParseFromString(*bytes)) return absl::InternalError("it sent no message");
      if (message.has_hello()) GC_RETURN_IF_ERROR(TakeHello(message.hello()));
      if (message.has_answer()) TakeAnswer(message.answer());
    }
  }

  absl::Status TakeHello(const worker::v1::CompilerHello& hello) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (hello.protocol() != kWorkerProtocol) return absl::InternalError("it is of another build");
    process_->ready = true;
    supervisor_.OnReady(clock_.Now());
    Log(LogLevel::kInfo, "compiler_ready",
        {{"toolchain", hello.toolchain()},
         {"sandbox", hello.sandbox()},
         {"no_cuda", hello.no_cuda()},
         {"no_ptx", hello.no_ptx()},
         {"no_sass", hello.no_sass()}});
    const MutexLock lock(mutex_);
    facts_ = FactsOf(hello);
    return absl::OkStatus();
  }

  void TakeAnswer(const worker::v1::CompilerAnswer& answer) {
    const auto found = orders_.find(answer.id());
    if (found == orders_.end()) return;
    output_.NextRun();
    const Order& order = found->second;
    auto result = ResultOf(answer, limits_);
    const bool failed = result.ok() && result->failed();
    const CompileOutcome outcome = OutcomeOf(result.status(), failed);
    if (order.done) observer_.OnCompiled(order.kind, outcome, clock_.Now() - order.sent);
    if (outcome == CompileOutcome::kCrashed) {
      LogEnd("compile_crashed", order, result.status().message());
    }
    Finish(answer.id(), std::move(result));
  }

  // Whose code it was. Disassembling has no module id.
  static void LogEnd(absl::string_view event, const Order& order, absl::string_view detail) {
    Log(LogLevel::kWarning, event,
        {{"module", order.id}, {"client", order.principal}, {"detail", std::string(detail)}});
  }

  void Finish(Ticket ticket, absl::StatusOr<worker::v1::CompilerResult> result) {
    auto node = orders_.extract(ticket);
    queue_.Remove(ticket);
    Order& order = node.mapped();
    if (!result.ok()) return order.Fail(result.status());
    if (order.text_done) return order.text_done(std::move(*result->mutable_sass()));
    auto code = ModuleOf(*std::move(result));
    if (!code.ok()) return order.Fail(code.status());
    if (cache_ != nullptr && !code->facts.failed) {
      cache_->Write(order.principal, order.id, *code);
    }
    order.done(MadeModule{*std::move(code), ModuleOrigin::kCompiled});
  }

  // Those that ran are answered, those that wait go to the next one.
  void Lose(absl::string_view why, Supervisor::End end) ABSL_LOCKS_EXCLUDED(mutex_) {
    Log(LogLevel::kWarning, "compiler_lost", {{"error", std::string(why)}});
    const bool was_ready = process_->ready;
    EndProcess();
    observer_.OnCompilerLost();
    next_spawn_ = supervisor_.OnEnd(was_ready ? end : Supervisor::End::kItself, clock_.Now());
    {
      const MutexLock lock(mutex_);
      facts_.ready = false;
      facts_.lost = true;
    }
    std::vector<Ticket> ran;
    for (const auto& [ticket, order] : orders_) {
      if (order.sent != absl::InfiniteFuture()) ran.push_back(ticket);
    }
    for (const Ticket ticket : ran) {
      observer_.OnCompiled(orders_.at(ticket).kind, CompileOutcome::kLost, absl::ZeroDuration());
      LogEnd("compile_lost", orders_.at(ticket), why);
      Finish(ticket, CompilerLost());
    }
  }
  void EndProcess() {
    if (process_) output_.Drain(process_->process.output_fd());
    process_.reset();
  }
  void FailAll(const absl::Status& status) {
    while (!orders_.empty()) Finish(orders_.begin()->first, status);
  }

  const CompilerOptions options_;
  const Limits limits_;
  const Clock& clock_;
  ModuleCache* const cache_;
  CompileObserver& observer_;
  const UniqueFd wake_;
  std::thread thread_;

  Supervisor supervisor_;
  CompileQueue queue_;
  std::map<Ticket, Order> orders_;  // Waiting and sent.
  std::optional<Incarnation> process_;
  absl::Time next_spawn_ = absl::InfinitePast();
  absl::Time looked_ = absl::InfiniteFuture();
  absl::Duration missed_;  // In which it should have looked, in all.
  WorkerOutput output_{"compiler"};

  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Ticket next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
  std::deque<std::pair<Ticket, Order>> posted_ ABSL_GUARDED_BY(mutex_);
  std::vector<Ticket> cancelled_ ABSL_GUARDED_BY(mutex_);
  CompilerFacts facts_ ABSL_GUARDED_BY(mutex_);
  Usage usage_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Compiler>> Compiler::Create(const CompilerOptions& options,
                                                           const Limits& limits, const Clock& clock,
                                                           ModuleCache* cache,
                                                           CompileObserver& observer) {
  GC_RETURN_IF_ERROR(CheckRunnable("a compiler program", options.path));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return ErrnoToStatus(errno, "eventfd");
  return std::make_unique<CompilerThread>(options, limits, clock, cache, observer, std::move(wake));
}

}  // namespace gridclock
