#include "server/rpc/modules.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/mutex.h"
#include "base/status.h"
#include "gridclock/v1/modules.pb.h"
#include "proto/codec/module.h"
#include "proto/types/quote.h"
#include "server/rpc/auth.h"
#include "server/rpc/buffer.h"
#include "server/rpc/call.h"
#include "server/rpc/module_id.h"
#include "server/rpc/parse.h"
#include "server/rpc/unary_call.h"

namespace gridclock {
namespace {

constexpr std::size_t kMostAnswer = 4 * 1024 * 1024 - 16 * 1024;  // As gRPC's clients receive.
constexpr std::size_t kLogInError = 3 * 1024;
constexpr std::size_t kFirstErrorInText = 200;
constexpr std::size_t kAround = 64 * 1024;  // Of a request: what is neither source nor code.
constexpr char kUsualArch[] = "sm_90a";

absl::Status NoModule(absl::string_view id) {
  return WithDetails(
      absl::NotFoundError(absl::StrCat("no module ", Quote(id), " of this client")),
      {.reason = "NO_MODULE", .field = "id", .retry_after = std::nullopt, .metadata = {}});
}

absl::Status NoToolchain(absl::string_view why) {
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat("this server cannot do that: ", why)),
      "NO_TOOLCHAIN");
}

// Whole characters.
std::string Beginning(absl::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

// The first line that says what is wrong.
std::string FirstError(absl::string_view log) {
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    // "error_count" in a warning is none.
    // ptxas writes "Error: ".
    if (absl::StartsWith(line, "error: ") || absl::StrContains(line, ": error") ||
        absl::StrContains(line, ": Error") || absl::StrContains(line, "catastrophic error") ||
        absl::StrContains(line, "fatal")) {
      return Beginning(line, kFirstErrorInText);
    }
  }
  return Beginning(absl::StripTrailingAsciiWhitespace(log), kFirstErrorInText);
}

absl::Status CompileFailed(const std::string& id, const ModuleFacts& facts) {
  return WithDetails(
      absl::InvalidArgumentError(absl::StrCat("it does not compile: ", FirstError(facts.log))),
      {.reason = "COMPILE_FAILED",
       .field = "",
       .retry_after = std::nullopt,
       .metadata = {{"module", id},
                    {"log", Beginning(facts.log, kLogInError)},
                    {"log_truncated", facts.log.size() > kLogInError ? "true" : "false"}}});
}

// "sm_90a" for a device of compute capability 9.0.
std::string ArchOf(const Backend& backend) {
  constexpr std::int64_t kFirstWithOwn = 90;
  for (const DeviceStatus& device : backend.table.Devices()) {
    const std::int64_t sm = device.info.traits.sm;
    if (sm > 0) return absl::StrCat("sm_", sm, sm >= kFirstWithOwn ? "a" : "");
  }
  return kUsualArch;
}

absl::Status CheckArchIsKnown(const std::string& arch, const CompilerFacts& facts) {
  absl::string_view base = arch;
  if (!absl::ConsumeSuffix(&base, "a")) absl::ConsumeSuffix(&base, "f");
  const auto& known = facts.architectures;
  constexpr int kFirstWithA = 90, kFirstWithF = 100;
  int number = 0;
  const bool numbered = absl::SimpleAtoi(absl::StripPrefix(base, "sm_"), &number);
  if (numbered && base != arch && number < (arch.back() == 'a' ? kFirstWithA : kFirstWithF)) {
    return InvalidField(
        "options.arch",
        absl::StrCat("want an a of sm_90 and later alone, an f of sm_100 and later, got ",
                     Quote(arch)));
  }
  if (known.empty() || std::find(known.begin(), known.end(), base) != known.end()) {
    return absl::OkStatus();
  }
  return InvalidField("options.arch",
                      absl::StrCat("want one of ", absl::StrJoin(known, ", "),
                                   ", maybe with a or f behind it, got ", Quote(arch)));
}

absl::Status CheckTools(const ModuleSource& source, const CompilerFacts& facts, bool allow_cubin) {
  switch (source.kind) {
    case ModuleKind::kCuda:
      return facts.no_cuda.empty() ? absl::OkStatus() : NoToolchain(facts.no_cuda);
    case ModuleKind::kPtx:
      return facts.no_ptx.empty() ? absl::OkStatus() : NoToolchain(facts.no_ptx);
    case ModuleKind::kTestNative:
      return absl::OkStatus();
    case ModuleKind::kCubin:
      break;
  }
  if (allow_cubin) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError("this server takes no cubins: it runs without --allow-cubin"),
      "CUBIN_OFF");
}

// A function by this name stands in the guests of this server.
absl::Status CheckNative(const std::string& name, const KernelTable& table) {
  const std::optional<std::vector<std::string>> natives = table.Natives();
  if (!natives) {
    return WithDetails(
        absl::UnavailableError("test_native: the first process for submitted code is starting"),
        {.reason = "WORKER_STARTING",
         .field = "",
         .retry_after = absl::Milliseconds(200),
         .metadata = {}});
  }
  if (natives->empty()) {
    return WithReason(absl::FailedPreconditionError(
                          "test_native: no worker of this server was built with native functions"),
                      "NO_TEST_NATIVE");
  }
  if (std::find(natives->begin(), natives->end(), name) != natives->end()) return absl::OkStatus();
  return UnknownName("test_native", absl::StrCat("no native function ", Quote(name), "; there are ",
                                                 absl::StrJoin(*natives, ", ")));
}

// Its only entry is the function.
ModulePtr NativeModule(const std::string& name) {
  auto module = std::make_shared<ModuleCode>();
  module->facts.kind = ModuleKind::kTestNative;
  ModuleEntry& entry = module->facts.entries.emplace_back();
  entry.name = entry.display = name;
  return module;
}

// What a call is answered with, when it is.
struct Answerable {
  std::string id;
  ModulePtr module;
  ModuleOrigin origin = ModuleOrigin::kMemory;
};

v1::Module MessageOf(const Answerable& answer, const ModuleView& view) {
  v1::Module out;
  Encode(answer.module->facts, &out);
  EncodeOccupancies(answer.module->facts, view, &out);
  out.set_id(answer.id);
  out.set_origin(static_cast<v1::Module::Origin>(answer.origin));
  out.set_ptx_bytes(answer.module->ptx.size());
  out.set_cubin_bytes(answer.module->cubin.size());
  if (view.ptx) out.set_ptx(answer.module->ptx);
  if (view.cubin) out.set_cubin(answer.module->cubin);
  return out;
}

// A call whose answer may be large: it holds memory, of which each client has a share, until the
// client has read it or was waited for in vain.
class AnswerCall : public UnaryCall {
 public:
  AnswerCall(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context,
             Intake intake)
      : UnaryCall(backend, method, context, intake) {}
  ~AnswerCall() override { backend_.stream_memory.Return(principal_, held_); }

 protected:
  template <typename Message>
  void ReplyWith(const Message& message) {
    const std::uint64_t size = message.ByteSizeLong();
    if (const absl::Status room = backend_.stream_memory.Take(principal_, size); !room.ok()) {
      return End(room);
    }
    held_ = size;
    Reply(ToBuffer(message.SerializeAsString()));
  }

 private:
  absl::StatusOr<std::string> Authorize() override {
    GC_RETURN_IF_ERROR(backend_.authenticator.Identify(context_).status());
    if (!backend_.modules) return SubmitOffStatus();
    return backend_.authenticator.Authorize(context_, Role::kSubmit);
  }

  std::uint64_t held_ = 0;
};

// A call that waits for the compiler, or may have to.
class ModuleCall final : public AnswerCall {
 public:
  ModuleCall(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context)
      : AnswerCall(
            backend, method, context,
            method == RpcMethod::kGetModule ? SmallRequests(backend) : LargeRequests(backend)),
        method_(method) {}

 private:
  void Abandon() override {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    if (ticket_ != 0) backend_.modules->maker.Cancel(ticket_);
  }

  absl::Status Accept(const grpc::ByteBuffer& buffer) override {
    switch (method_) {
      case RpcMethod::kCompile:
        return AcceptSource<v1::CompileRequest>(buffer,
                                                {backend_.limits.source_bytes, "source_bytes"});
      case RpcMethod::kLoad:
        return AcceptSource<v1::LoadRequest>(buffer, {backend_.limits.code_bytes, "code_bytes"});
      default:
        return AcceptId(buffer);
    }
  }

  template <typename Request>
  absl::Status AcceptSource(const grpc::ByteBuffer& buffer, MostBytes most) {
    most.bytes = 2 * most.bytes + kAround;
    GC_ASSIGN_OR_RETURN(Request request, ParseRequest<Request>(buffer, most));
    GC_ASSIGN_OR_RETURN(view_, Decode(request.view()));
    const ModuleLimits limits{
        .source_bytes = static_cast<std::uint64_t>(backend_.limits.source_bytes),
        .code_bytes = static_cast<std::uint64_t>(backend_.limits.code_bytes)};
    GC_ASSIGN_OR_RETURN(ModuleSource source, Decode(std::move(request), limits));
    return Make(std::move(source));
  }

  // There is nothing to compile.
  absl::Status MakeNative(const ModuleSource& source) {
    const std::string& name = source.main.text;
    GC_RETURN_IF_ERROR(CheckNative(name, backend_.table));
    ModuleTable& table = backend_.modules->table;
    answer_.id = ModuleId(principal_, /*toolchain=*/"", source);
    answer_.module = table.Find(principal_, answer_.id);
    if (answer_.module == nullptr) {
      answer_.module = NativeModule(name);
      GC_RETURN_IF_ERROR(table.Add(principal_, answer_.id, answer_.module));
    }
    Answer();
    return absl::OkStatus();
  }

  absl::Status Make(ModuleSource source) {
    if (source.kind == ModuleKind::kTestNative) return MakeNative(source);
    ModuleBackend& modules = *backend_.modules;
    const CompilerFacts facts = modules.maker.facts();
    if (!facts.known) return UnknownStatus(facts.lost);
    GC_RETURN_IF_ERROR(CheckTools(source, facts, modules.allow_cubin));
    GC_RETURN_IF_ERROR(CheckView(facts));
    if (source.options.arch.empty() && source.kind != ModuleKind::kCubin) {
      source.options.arch = ArchOf(backend_);
    }
    if (!source.options.arch.empty()) {
      GC_RETURN_IF_ERROR(CheckArchIsKnown(source.options.arch, facts));
    }
    answer_.id = ModuleId(principal_, facts.fingerprint, source);
    answer_.module = modules.table.Find(principal_, answer_.id);
    if (answer_.module != nullptr) {
      Answer();
      return absl::OkStatus();
    }
    GC_RETURN_IF_ERROR(modules.table.CheckQuota(principal_));
    Order([&](ModuleMaker& maker) {
      return maker.Make(principal_, answer_.id, std::move(source), MadeCallback());
    });
    return absl::OkStatus();
  }

  absl::Status AcceptId(const grpc::ByteBuffer& buffer) {
    GC_ASSIGN_OR_RETURN(const v1::GetModuleRequest request,
                        ParseRequest<v1::GetModuleRequest>(buffer, {kAround}));
    GC_ASSIGN_OR_RETURN(view_, Decode(request.view()));
    ModuleBackend& modules = *backend_.modules;
    GC_RETURN_IF_ERROR(CheckView(modules.maker.facts()));
    answer_.id = request.id();
    answer_.module = modules.table.Find(principal_, answer_.id);
    if (answer_.module != nullptr) {
      Answer();
      return absl::OkStatus();
    }
    Order([&](ModuleMaker& maker) { return maker.Fetch(principal_, answer_.id, MadeCallback()); });
    return absl::OkStatus();
  }

  absl::Status CheckView(const CompilerFacts& facts) const {
    return view_.sass && !facts.no_sass.empty() ? NoToolchain(facts.no_sass) : absl::OkStatus();
  }

  // No compiler said yet what it can do. One that ended before it did is no start that one waits
  // for.
  static absl::Status UnknownStatus(bool lost) {
    return WithDetails(
        absl::UnavailableError(lost ? "the compiler cannot be started, or ends before it said "
                                      "what it can do (the log says why); it is tried again"
                                    : "the compiler is starting"),
        {.reason = lost ? "COMPILER_LOST" : "COMPILER_STARTING",
         .field = "",
         .retry_after = lost ? absl::Seconds(5) : absl::Milliseconds(200),
         .metadata = {}});
  }

  // The client may have gone while the order was made.
  template <typename MakeOrder>
  void Order(const MakeOrder& make) ABSL_LOCKS_EXCLUDED(mutex_) {
    ModuleMaker& maker = backend_.modules->maker;
    const ModuleMaker::Ticket ticket = make(maker);
    const MutexLock lock(mutex_);
    ticket_ = ticket;
    if (cancelled_) maker.Cancel(ticket);
  }

  ModuleMaker::Done MadeCallback() {
    return [self = Self()](absl::StatusOr<MadeModule> made) { self->TakeMade(std::move(made)); };
  }

  void TakeMade(absl::StatusOr<MadeModule> made) {
    if (absl::IsNotFound(made.status())) return End(NoModule(answer_.id));
    if (!made.ok()) return Fail(made.status());
    answer_.origin = made->origin;
    answer_.module = std::make_shared<const ModuleCode>(std::move(made->code));
    const absl::Status kept = backend_.modules->table.Add(principal_, answer_.id, answer_.module);
    if (kept.ok()) return Answer();
    // What there is no room for takes none of its client's share of the disk either.
    if (answer_.origin == ModuleOrigin::kCompiled) {
      backend_.modules->maker.Forget(principal_, answer_.id);
    }
    End(kept);
  }

  void Answer() {
    const bool asked = method_ == RpcMethod::kGetModule;
    if (!asked && answer_.module->facts.failed) {
      return End(CompileFailed(answer_.id, answer_.module->facts));
    }
    if (!asked) backend_.modules->observer.OnModule(answer_.origin);
    message_ = MessageOf(answer_, view_);
    if (!view_.sass || answer_.module->cubin.empty()) return Send();
    Order([&](ModuleMaker& maker) {
      return maker.Disassemble(principal_, answer_.module,
                               [self = Self()](absl::StatusOr<std::string> sass) {
                                 if (!sass.ok()) return self->Fail(sass.status());
                                 self->message_.set_sass(*std::move(sass));
                                 self->Send();
                               });
    });
  }

  void Send() {
    if (message_.ByteSizeLong() > kMostAnswer) {
      return End(WithReason(
          absl::ResourceExhaustedError(absl::StrCat("this answer has ", message_.ByteSizeLong(),
                                                    " bytes, more than a message may: ask for "
                                                    "one of ptx, sass and cubin at a time")),
          "TOO_LARGE"));
    }
    ReplyWith(std::exchange(message_, {}));
  }

  // Of a call that was cancelled the maker knows only that.
  void Fail(const absl::Status& status) {
    End(absl::IsCancelled(status) ? CancelReason(context_, meter_.age()) : status);
  }

  std::shared_ptr<ModuleCall> Self() {
    return std::static_pointer_cast<ModuleCall>(shared_from_this());
  }

  const RpcMethod method_;
  ModuleView view_;
  Answerable answer_;
  v1::Module message_;
  Mutex mutex_;
  ModuleMaker::Ticket ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

// A call that is answered at once. `serve` gets the principal, and fills the response.
template <typename Request, typename Response, typename Do>
class ModuleNowCall final : public AnswerCall {
 public:
  ModuleNowCall(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context,
                const Do& serve)
      : AnswerCall(backend, method, context, SmallRequests(backend)), serve_(serve) {}

 private:
  absl::Status Accept(const grpc::ByteBuffer& buffer) override {
    GC_ASSIGN_OR_RETURN(const Request request, ParseRequest<Request>(buffer, {kAround}));
    Response message;
    GC_RETURN_IF_ERROR(serve_(principal_, request, &message));
    ReplyWith(message);
    return absl::OkStatus();
  }

  const Do& serve_;
};

void ListModules(const ModuleTable& table, const std::string& principal,
                 v1::ListModulesResponse* out) {
  std::size_t bytes = 0;
  for (const auto& [id, module] : table.List(principal)) {
    v1::Module message = MessageOf({.id = id, .module = module}, {});
    message.clear_log();
    message.clear_notes();
    const std::size_t size = message.ByteSizeLong();
    if (bytes + size > kMostAnswer) {
      out->set_truncated(true);
      continue;
    }
    bytes += size;
    *out->add_modules() = std::move(message);
  }
}

}  // namespace

ModuleService::ModuleService(Backend& backend) {
  for (const RpcMethod method : {RpcMethod::kCompile, RpcMethod::kLoad, RpcMethod::kGetModule}) {
    Add(method, [&backend, method](grpc::CallbackServerContext* context) {
      return BeginCall<ModuleCall>(backend, method, *context);
    });
  }
  AddServed<ModuleNowCall, v1::ListModulesRequest, v1::ListModulesResponse>(
      backend, RpcMethod::kListModules,
      [&backend](const std::string& principal, const v1::ListModulesRequest&,
                 v1::ListModulesResponse* out) {
        ListModules(backend.modules->table, principal, out);
        return absl::OkStatus();
      });
  AddServed<ModuleNowCall, v1::DeleteModuleRequest, v1::DeleteModuleResponse>(
      backend, RpcMethod::kDeleteModule,
      [&backend](const std::string& principal, const v1::DeleteModuleRequest& in,
                 v1::DeleteModuleResponse*) {
        const bool kept = backend.modules->table.Remove(principal, in.id());
        if (kept) backend.modules->programs.Forget(in.id());
        const bool cached = backend.modules->maker.Forget(principal, in.id());
        return kept || cached ? absl::OkStatus() : NoModule(in.id());
      });
}

}  // namespace gridclock
