// gridclock-server: builds its parts, hands each what it needs, and takes them down in reverse.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <thread>

#include <google/protobuf/stubs/common.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/units.h"
#include "server/children.h"
#include "server/core/arrivals.h"
#include "server/core/device_states.h"
#include "server/core/idle_pages.h"
#include "server/core/read_gate.h"
#include "server/fleet/compiler.h"
#include "server/fleet/copiers.h"
#include "server/fleet/device_list.h"
#include "server/fleet/fleet.h"
#include "server/fleet/module_cache.h"
#include "server/fleet/worker_process.h"
#include "server/heap.h"
#include "server/metrics/metrics.h"
#include "server/metrics/state.h"
#include "server/options.h"
#include "server/ready_file.h"
#include "server/reload_files.h"
#include "server/rpc/calls_in_flight.h"
#include "server/rpc/descriptors.h"
#include "server/rpc/pem.h"
#include "server/rpc/server.h"
#include "server/rpc/stall_watch.h"

namespace gridclock {
namespace {

constexpr absl::Duration kTurn = absl::Milliseconds(10);

// Of rpc_bytes: what messages of one client may take while they are on their way in.
constexpr double kMessagesOfOne = 1.0 / 2, kSmallOfOne = 1.0 / 16, kEndsOfOne = 1.0 / 16;

std::atomic<std::uint64_t> protobuf_complaints{0};

// protobuf would write a line for each text that is not UTF-8: a client could flood the log.
void CountComplaint(google::protobuf::LogLevel, const char*, int, const std::string&) {
  ++protobuf_complaints;
}

sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Those, and the one that asks for files to be read again.
sigset_t OurSignals() {
  sigset_t signals = EndSignals();
  sigaddset(&signals, SIGHUP);
  return signals;
}

std::vector<std::string> NamesOf(const std::vector<ListedDevice>& devices) {
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const ListedDevice& device : devices) names.push_back(device.name);
  return names;
}

Versions VersionsOf(const std::string& no_gpu) {
  Versions versions = {
      .version = GRIDCLOCK_VERSION,
      .revision = GRIDCLOCK_REVISION,
      .libraries = {
          {"grpc", grpc::Version()},
          {"protobuf", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)}}};
  if (!no_gpu.empty()) versions.libraries["cuda driver"] = absl::StrCat("missing: ", no_gpu);
  return versions;
}

// In one piece, behind what the log still holds.
void Complain(const absl::Status& status) {
  FlushLog();
  std::cerr << absl::StrCat("gridclock-server: ", status.message(), "\n");
}

// At once: threads of parts that did start know nothing of the failure.
void EndIf(const absl::Status& status) {
  if (status.ok()) return;
  Complain(status);
  _exit(1);
}

std::string OnOff(bool on) {
  return on ? "on" : "off";
}

// The parts of the process in the order in which they are made; destroyed in reverse.
class Process {
 public:
  Process(ServerOptions options, Security security, std::vector<ListedDevice> devices,
          std::string no_gpu)
      : options_(std::move(options)),
        no_gpu_(std::move(no_gpu)),
        security_(std::move(security)),
        listed_(std::move(devices)),
        devices_(NamesOf(listed_)),
        table_(devices_),
        allocator_(static_cast<std::uint64_t>(options_.limits.arena_bytes),
                   static_cast<std::uint64_t>(options_.limits.client_arena_bytes)),
        request_ids_(clock_, options_.limits),
        modules_(options_.limits),
        stream_memory_("stream_memory_bytes",
                       static_cast<std::uint64_t>(options_.limits.stream_memory_bytes)),
        requests_(options_.limits.rpc_bytes * kMessagesOfOne, options_.limits),
        small_requests_(options_.limits.rpc_bytes * kSmallOfOne, options_.limits),
        stream_ends_(options_.limits.rpc_bytes * kEndsOfOne, options_.limits) {}

  absl::Status Start() {
    if (!options_.ready_file.empty()) GC_RETURN_IF_ERROR(CheckReadyFile(options_.ready_file));
    if (options_.allow_submit) GC_RETURN_IF_ERROR(CloseMemory());
    GC_RETURN_IF_ERROR(StartMetrics());
    auto acceptor = Acceptor::Create(AcceptorOptions(), clock_, rpc_observer());
    if (!acceptor.ok()) return Annotate(acceptor.status(), "--listen");
    acceptor_ = *std::move(acceptor);
    GC_RETURN_IF_ERROR(StartFleet());
    if (options_.allow_submit) GC_RETURN_IF_ERROR(StartCompiler());
    if (metrics_ != nullptr) metrics_->Watch(MetricSources());
    GC_RETURN_IF_ERROR(StartRpc());
    ticker_ = std::thread([this] { Tick(); });
    fleet_->Start();
    LogStart();
    return absl::OkStatus();
  }

  // Until a signal that ends it, or a start that failed; then drains. A second signal ends the
  // process at once. Returns why the start failed.
  absl::Status Serve() {
    int signal = SIGHUP;
    const sigset_t signals = OurSignals();
    for (sigwait(&signals, &signal); signal == SIGHUP; sigwait(&signals, &signal)) {
      ReloadNowOrNext();
    }
    Log(LogLevel::kInfo, "drain", {{"signal", strsignal(signal)}});
    std::thread([] {
      int second = 0;
      const sigset_t again = EndSignals();
      sigwait(&again, &second);
      FlushLog();
      // Workers see the end of their socket, and the kernel signals them too.
      _exit(128 + second);
    }).detach();
    Drain();
    return failure_;
  }

  // What it reads may never come, and uses what is here.
  bool is_reading() const { return reloader_.is_reading(); }

 private:
  absl::Status Reload(Reloader::Done done) {
    return reloader_.Reload([done = std::move(done)](const auto& parts) {
      LogReload(parts);
      done(parts);
    });
  }

  // As SIGHUP asks, which gets no answer.
  void ReloadNowOrNext() {
    if (reloader_.ReloadNowOrNext(&LogReload)) return;
    Log(LogLevel::kWarning, "reload_waits", {{"reason", "another reload still reads its files"}});
  }

  JobObserver& job_observer() {
    return metrics_ != nullptr ? metrics_->job_observer() : NullJobObserver();
  }
  RpcObserver& rpc_observer() {
    return metrics_ != nullptr ? metrics_->rpc_observer() : NullRpcObserver();
  }

  absl::Status StartMetrics() {
    if (options_.metrics_listen.empty()) return absl::OkStatus();
    Metrics::Options metrics;
    metrics.address = options_.metrics_listen;
    metrics.version = GRIDCLOCK_VERSION;
    metrics.revision = GRIDCLOCK_REVISION;
    metrics.cuda = GRIDCLOCK_CUDA_VERSION;
    metrics.caps = Registry::CapsFor(devices_.size());
    auto made = Metrics::Create(metrics);
    if (!made.ok()) return Annotate(made.status(), "--metrics-listen");
    metrics_ = *std::move(made);
    return absl::OkStatus();
  }

  absl::Status StartFleet() {
    auto arena =
        Arena::Create(allocator_.capacity() + Fleet::OwnBytes(devices_.size()),
                      std::min<std::uint64_t>(static_cast<std::uint64_t>(options_.arena_warm_bytes),
                                              allocator_.capacity()));
    if (!arena.ok()) return Annotate(arena.status(), "--limit-arena-bytes");
    arena_.emplace(*std::move(arena));
    scheduler_ = std::make_unique<Scheduler>(clock_, options_.limits, allocator_, job_observer());
    FleetOptions fleet;
    fleet.worker_path = WorkerPath(options_);
    fleet.devices = devices_;
    for (const ListedDevice& device : listed_) {
      if (!device.uuid.empty()) fleet.uuids[device.name] = device.uuid;
    }
    fleet.environment = WorkerEnvironment();
    if (options_.allow_submit) {
      fleet.guest_bytes = static_cast<std::uint64_t>(options_.limits.guest_bytes);
      fleet.weak_sandbox = options_.weak_sandbox;
      fleet.copiers = Copiers::HelpersHere();
#ifdef GRIDCLOCK_TEST_BUILD
      fleet.copiers = options_.copiers.value_or(fleet.copiers);
      for (const std::string& defence : options_.without_defences) {
        if (defence == "fresh") fleet.defences.fresh = false;
        if (defence == "poison") fleet.defences.poison = false;
        if (defence == "margins") fleet.defences.margins = false;
        if (defence == "inputs") fleet.defences.inputs = false;
        if (defence == "timed") fleet.defences.timed = false;
        if (defence == "roofline") fleet.defences.roofline = false;
        if (defence == "scratch") fleet.environment.emplace_back("GRIDCLOCK_KEEP_SCRATCH=1");
        if (defence == "shared") fleet.environment.emplace_back("GRIDCLOCK_KEEP_SHARED=1");
      }
#endif
    }
    fleet.seed = std::random_device()();
    GC_ASSIGN_OR_RETURN(
        fleet_,
        Fleet::Create(fleet, {table_, *scheduler_, clock_, job_observer(), *arena_, allocator_,
                              &strikes_, static_cast<std::size_t>(options_.limits.printed_bytes)}));
    if (fleet.copiers > 0) {
      arrivals_.emplace(fleet.copiers, [this](JobId id, const InputArrival& part) {
        scheduler_->Arrived(id, part);
      });
    }
    return absl::OkStatus();
  }

  // Guests run as the same user.
  static absl::Status CloseMemory() {
    if (prctl(PR_SET_DUMPABLE, 0) == 0) return absl::OkStatus();
    return ErrnoToStatus(errno, "PR_SET_DUMPABLE");
  }

  CompileObserver& compile_observer() {
    return metrics_ != nullptr ? metrics_->compile_observer() : NullCompileObserver();
  }

  absl::Status StartCompiler() {
    if (!options_.module_cache.empty()) {
      auto cache = ModuleCache::Open(
          options_.module_cache, static_cast<std::uint64_t>(options_.limits.module_cache_bytes));
      if (!cache.ok()) return Annotate(cache.status(), "--module-cache");
      module_cache_ = *std::move(cache);
    }
    auto compiler = Compiler::Create(CompilerOptionsOf(options_), options_.limits, clock_,
                                     module_cache_.get(), compile_observer());
    if (!compiler.ok()) return Annotate(compiler.status(), "--compiler");
    compiler_ = *std::move(compiler);
    modules_.SetRelease([this](absl::string_view id) { programs_.Forget(id); });
    compiler_->Start();
    return absl::OkStatus();
  }

  std::optional<ModuleBackend> Modules() {
    if (compiler_ == nullptr) return std::nullopt;
    return ModuleBackend{.table = modules_,
                         .maker = *compiler_,
                         .observer = compile_observer(),
                         .programs = programs_,
                         .allow_cubin = options_.allow_cubin,
                         .arrivals = arrivals_ ? &*arrivals_ : nullptr};
  }

  absl::Status StartRpc() {
    AddFiles(options_, security_, reloader_);
    admin_.emplace(table_, *scheduler_);
    backend_.emplace(Backend{.clock = clock_,
                             .limits = options_.limits,
                             .table = table_,
                             .scheduler = *scheduler_,
                             .request_ids = request_ids_,
                             .authenticator = security_.authenticator,
                             .observer = rpc_observer(),
                             .job_observer = job_observer(),
                             .stalls = stalls_,
                             .calls = calls_,
                             .requests = requests_,
                             .small_requests = small_requests_,
                             .stream_ends = stream_ends_,
                             .stream_memory = stream_memory_,
                             .memory = [this](const MemoryRange& r) { return arena_->At(r); },
                             .limit_usage = [this] { return LimitUsage(); },
                             .draining = [this] { return state_ == ServerState::kDraining; },
                             .admin = *admin_,
                             .reload = [this](auto done) { return Reload(std::move(done)); },
                             .versions = VersionsOf(no_gpu_),
                             .started = clock_.Now(),
                             .modules = Modules()});
    RpcServer::Options rpc;
    rpc.tls = security_.tls;
    rpc.reflection =
        options_.reflection == "on" || (options_.reflection == "auto" && security_.loopback);
    GC_ASSIGN_OR_RETURN(rpc_, RpcServer::Create(rpc, *backend_, *acceptor_));
    return absl::OkStatus();
  }

  Acceptor::Options AcceptorOptions() const {
    return {.listen = security_.listen,
            .connections = static_cast<std::size_t>(options_.limits.connections),
            .peer_connections = static_cast<std::size_t>(options_.limits.peer_connections)};
  }

  std::map<std::string, double> LimitUsage() const {
    int queued = 0, queued_of_one = 0;
    for (const auto& [device, usage] : scheduler_->usage()) {
      queued = std::max(queued, usage.fuller_queue);
      queued_of_one = std::max(queued_of_one, usage.queued_of_one);
    }
    const Acceptor::Usage connections = acceptor_->usage();
    const RequestIds::Usage ids = request_ids_.usage();
    const ModuleTable::Usage modules = modules_.usage();
    const auto compiles = compiler_ != nullptr ? compiler_->usage() : ModuleMaker::Usage();
    const std::uint64_t cached = module_cache_ != nullptr ? module_cache_->bytes() : 0;
    return {{"arena_bytes", static_cast<double>(allocator_.used())},
            {"client_arena_bytes", static_cast<double>(allocator_.most_of_one())},
            {"queue", queued},
            {"client_queue", queued_of_one},
            {"connections", static_cast<double>(connections.connections)},
            {"peer_connections", static_cast<double>(connections.busiest_peer)},
            {"stream_memory_bytes", static_cast<double>(stream_memory_.used())},
            {"request_ids", static_cast<double>(ids.entries)},
            {"request_id_bytes", static_cast<double>(ids.bytes)},
            {"compiles", static_cast<double>(compiles.running)},
            {"compile_queue", static_cast<double>(compiles.waiting)},
            {"client_modules", static_cast<double>(modules.most_of_one)},
            {"module_memory_bytes", static_cast<double>(modules.bytes)},
            {"module_cache_bytes", static_cast<double>(cached)}};
  }

  Sources MetricSources() {
    Sources sources;
    sources.not_ready = [this] { return NotReady(); };
    sources.knows_kernel = [this](absl::string_view kernel) { return table_.Find(kernel).ok(); };
    sources.devices = [this] { return DevicesNow(table_, *scheduler_); };
    sources.queue_usage = [this] { return scheduler_->usage(); };
    sources.limit_usage = [this] { return LimitUsage(); };
    if (compiler_ != nullptr) sources.compiler_up = [this] { return compiler_->facts().ready; };
    sources.reloads = [this] { return reloader_.parts(); };
    if (security_.tls != nullptr) {
      sources.certificate_expiry = [this] {
        const Tls tls = security_.tls->current();
        return ExpiryOf(tls.certificate, tls.read);
      };
    }
    sources.open_connections = [this] { return acceptor_->usage().connections; };
    sources.limits = options_.limits;
    sources.dropped_log_lines = [] { return DroppedLogLines(); };
    sources.protobuf_complaints = [] { return protobuf_complaints.load(); };
    return sources;
  }

  std::string NotReady() const {
    if (state_ == ServerState::kDraining) return "the server ends";
    const std::string why = WhyNoneTakesCalls(table_.Devices());
    return why.empty() && state_ == ServerState::kStarting ? "the server starts" : why;
  }

  // Health, the first workers, calls whose client is silent, and memory that is idle.
  void Tick() {
    absl::Time next_stall_check = clock_.Now();
    FirstWorkers first(devices_, clock_.Now() + FleetOptions().longest_start);
    IdlePages pages(HeapOfMalloc());
    while (!stop_ticking_) {
      const auto devices = table_.Devices();
      auto starting = ServerState::kStarting;
      const bool served = state_ == starting && CanServe(first, devices) &&
                          state_.compare_exchange_strong(starting, ServerState::kServing);
      rpc_->health().Update(devices, state_, acceptor_->alive());
      if (served) Announce();
      if (const absl::Time now = clock_.Now(); now >= next_stall_check) {
        stalls_.Tick(now);
        LogLeftOut();
        next_stall_check = now + absl::Milliseconds(500);
        pages.Tick(now);
      }
      std::this_thread::sleep_for(absl::ToChronoMilliseconds(kTurn));
    }
  }

  bool CanServe(FirstWorkers& first, const std::vector<DeviceStatus>& devices) {
    if (!options_.exit_on_error) return AnyDeviceUp(devices);
    const auto all_were_ready = first.Look(devices, clock_.Now());
    if (!all_were_ready.ok()) Fail(Annotate(all_were_ready.status(), "--exit-on-error"));
    return all_were_ready.value_or(false) && AnyDeviceUp(devices);
  }

  void Announce() {
    if (!options_.ready_file.empty()) {
      std::string text = absl::StrCat("grpc=", acceptor_->address(), "\n");
      if (metrics_ != nullptr) absl::StrAppend(&text, "metrics=", MetricsAddress(), "\n");
      absl::StrAppend(&text, "pid=", getpid(), "\n");
      if (const auto status = WriteReadyFile(options_.ready_file, text); !status.ok()) {
        return Fail(status);
      }
    }
    Log(LogLevel::kInfo, "ready", {{"grpc", acceptor_->address()}});
  }

  // Has Serve() drain: calls may be running already.
  void Fail(const absl::Status& why) {
    Log(LogLevel::kError, "start_failed", {{"error", std::string(why.message())}});
    failure_ = why;
    state_ = ServerState::kDraining;
    // That thread's alone: it is no second signal. All block it, and Serve() waits for it.
    pthread_kill(serving_, SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  }

  std::string MetricsAddress() const {
    const std::string& asked = options_.metrics_listen;
    return absl::StrCat(asked.substr(0, asked.rfind(':')), ":", metrics_->port());
  }

  void LogStart() const {
    Log(LogLevel::kInfo, "start",
        {{"version", GRIDCLOCK_VERSION},
         {"revision", GRIDCLOCK_REVISION},
         {"grpc_version", grpc::Version()},
         {"listen", acceptor_->address()},
         {"metrics", metrics_ != nullptr ? MetricsAddress() : "none"},
         {"tls", OnOff(security_.tls != nullptr)},
         {"tokens", OnOff(!options_.token_file.empty())},
         {"allow_submit", OnOff(options_.allow_submit)},
         {"allow_admin", OnOff(options_.allow_admin && options_.token_file.empty())},
         {"insecure_public", OnOff(options_.insecure_public)},
         {"devices", absl::StrJoin(devices_, ",")}});
    LogDoubtfulFlags(options_);
    if (security_.loopback) return;
    const std::string& address = acceptor_->address();
    if (security_.tls == nullptr) Log(LogLevel::kWarning, "insecure_public", {{"listen", address}});
    if (options_.token_file.empty() && options_.tls_client_ca.empty()) {
      Log(LogLevel::kWarning, "open_to_all",
          {{"listen", address}, {"hint", "--token-file or --tls-client-ca says who may call"}});
    }
  }

  void Drain() {
    state_ = ServerState::kDraining;  // The ticker tells health.
    const double delay =
        options_.drain_delay >= 0 ? options_.drain_delay : (security_.loopback ? 0 : 5);
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(absl::Seconds(delay)));
    scheduler_->Drain();
    calls_.Close();
    reloader_.Stop(DrainingStatus());
    WaitForCalls(absl::Seconds(options_.drain_grace), /*grace_over=*/false);
    std::thread metrics_end([this] {
      if (metrics_ != nullptr) metrics_->Stop();
    });
    if (compiler_ != nullptr) compiler_->Stop();
    fleet_->Stop();  // A kernel that outlasts the grace ends with its worker.
    for (const std::string& device : devices_) {
      scheduler_->OnDeviceDown(device, DrainingStatus());
      if (options_.allow_submit) scheduler_->OnDeviceDown(GuestLane(device), DrainingStatus());
    }
    constexpr absl::Duration kLastWords = absl::Seconds(1);  // For the reason to get out.
    WaitForCalls(kLastWords, /*grace_over=*/true);
    // Those who watch our health are cut off.
    rpc_->Shutdown(absl::Milliseconds(500));
    stop_ticking_ = true;
    ticker_.join();
    metrics_end.join();
    Log(LogLevel::kInfo, "stopped");
  }

  // Until all calls have their answers, or `limit` is over.
  void WaitForCalls(absl::Duration limit, bool grace_over) {
    const absl::Time end = clock_.Now() + limit;
    do {
      stalls_.Drain(DrainingStatus(), grace_over);
      std::this_thread::sleep_for(absl::ToChronoMilliseconds(kTurn));
    } while ((!scheduler_->idle() || calls_.count() > 0) && clock_.Now() < end);
  }

  const MonotonicClock clock_;
  const ServerOptions options_;
  const std::string no_gpu_;  // Why there is none.
  Security security_;
  Reloader reloader_{[] { return absl::Now(); }};
  const std::vector<ListedDevice> listed_;
  const std::vector<std::string> devices_;  // Their names.
  std::unique_ptr<Metrics> metrics_;
  KernelTable table_;
  ArenaAllocator allocator_;
  std::optional<Arena> arena_;
  std::unique_ptr<Scheduler> scheduler_;
  std::optional<Admin> admin_;
  RequestIds request_ids_;
  ModuleTable modules_;
  ModuleStrikes strikes_;
  Programs programs_{
      modules_, strikes_,
      [this](const std::string& principal, const std::string& id) -> absl::StatusOr<ModuleCode> {
        if (module_cache_ == nullptr) return absl::NotFoundError("");
        return module_cache_->Read(principal, id);
      }};
  std::unique_ptr<ModuleCache> module_cache_;  // Null: none.
  ByteBudget stream_memory_;
  StallWatch stalls_;
  CallsInFlight calls_;
  ReadGate requests_, small_requests_, stream_ends_;
  std::unique_ptr<Acceptor> acceptor_;
  std::optional<Backend> backend_;
  std::unique_ptr<Fleet> fleet_;
  std::optional<Arrivals> arrivals_;
  std::unique_ptr<Compiler> compiler_;  // Null without --allow-submit.
  std::unique_ptr<RpcServer> rpc_;
  const pthread_t serving_ = pthread_self();
  absl::Status failure_;  // Of the start; the ticker's.
  std::atomic<ServerState> state_{ServerState::kStarting};
  std::atomic<bool> stop_ticking_{false};
  std::thread ticker_;
};

int Main(int argc, char** argv) {
  ServerOptions options = ParseOptions(argc, argv);
  if (const absl::Status limits = CheckLimits(options.limits); !limits.ok()) {
    Complain(limits);
    return 2;
  }
  auto security = CheckSecurity(options);
  if (!security.ok()) {
    Complain(security.status());
    return 2;
  }
  const DeviceList here = DevicesHere(options);
  auto devices = SelectDevices(options.devices, here);
  if (!devices.ok()) {
    Complain(devices.status());
    return 2;
  }
  ResolveDefaults(options.limits, MemoryBytes(), devices->size());
  // With --allow-submit each device has a guest too, and there is the compiler.
  const std::size_t workers = options.allow_submit ? 2 * devices->size() + 1 : devices->size();
  if (const absl::Status fits = FitConnections(RaiseDescriptorLimit(), workers, options.limits);
      !fits.ok()) {
    Complain(fits);
    return 2;
  }
  Process process(std::move(options), *std::move(security), *std::move(devices), WhyNoGpu(here));
  EndIf(process.Start());
  const absl::Status end = process.Serve();
  if (!end.ok()) Complain(end);
  const int code = end.ok() ? 0 : 1;
  if (!process.is_reading()) return code;
  FlushLog();
  _exit(code);
}

}  // namespace
}  // namespace gridclock

int main(int argc, char** argv) {
  gridclock::KeepPages();
  // Debian builds abseil to look for cycles of locks at every lock that gRPC takes.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // Who starts us may ignore it, and how workers ended would be lost.
  // Before any thread is made, so that all inherit it and only Serve() hears them.
  const sigset_t signals = gridclock::OurSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  google::protobuf::SetLogHandler(&gridclock::CountComplaint);
  return gridclock::Main(argc, argv);
}
