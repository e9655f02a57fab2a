#include "server/rpc/reflection.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <google/protobuf/descriptor.pb.h>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "google/rpc/error_details.pb.h"
#include "gridclock/v1/admin.pb.h"
#include "gridclock/v1/kernels.pb.h"
#include "gridclock/v1/modules.pb.h"
#include "gridclock/v1/system.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "server/rpc/auth.h"
#include "server/rpc/buffer.h"
#include "server/rpc/call.h"
#include "server/rpc/parse.h"
#include "server/rpc/stall_watch.h"
#include "server/rpc/status.h"
#include "server/rpc/unary_call.h"

namespace gridclock {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

// Of rpc_bytes, of one client. A stream that says nothing holds its place in it.
constexpr double kQuestionsOfOne = 1.0 / 16;
constexpr double kMostBytes = 4096;

void SetError(absl::StatusCode code, const std::string& text, ServerReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(static_cast<int>(code));
  response->mutable_error_response()->set_error_message(text);
}

void AddFile(const FileDescriptor& file, absl::flat_hash_set<const FileDescriptor*>* added,
             ServerReflectionResponse* response) {
  if (!added->insert(&file).second) return;
  FileDescriptorProto proto;
  file.CopyTo(&proto);
  response->mutable_file_descriptor_response()->add_file_descriptor_proto(
      proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddFile(*file.dependency(i), added, response);
  }
}

// With all that it imports; null: there is none of this name.
void SetFile(const FileDescriptor* file, const std::string& name,
             ServerReflectionResponse* response) {
  if (file == nullptr) {
    return SetError(absl::StatusCode::kNotFound, absl::StrCat("not found: ", name), response);
  }
  absl::flat_hash_set<const FileDescriptor*> added;
  AddFile(*file, &added, response);
}

const FileDescriptor* FileOfExtension(const DescriptorPool& pool, const std::string& type,
                                      int number) {
  const Descriptor* extended = pool.FindMessageTypeByName(type);
  const FieldDescriptor* extension =
      extended == nullptr ? nullptr : pool.FindExtensionByNumber(extended, number);
  return extension == nullptr ? nullptr : extension->file();
}

void SetExtensions(const DescriptorPool& pool, const std::string& type,
                   ServerReflectionResponse* response) {
  const Descriptor* extended = pool.FindMessageTypeByName(type);
  if (extended == nullptr) return SetFile(nullptr, type, response);
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(extended, &extensions);
  auto* numbers = response->mutable_all_extension_numbers_response();
  numbers->set_base_type_name(type);
  for (const FieldDescriptor* extension : extensions) {
    numbers->add_extension_number(extension->number());
  }
}

// One message is read or written at a time. A client that asks nothing for stream_stall_seconds, or
// at first for as long as other small requests may take, is let go.
class ReflectionCall final : public Reactor,
                             public ReadGate::Reader,
                             public StallWatch::Stream,
                             public std::enable_shared_from_this<ReflectionCall> {
 public:
  ReflectionCall(Backend& backend, grpc::CallbackServerContext& context, ReadGate& gate,
                 const ServiceFiles& files)
      : backend_(backend),
        context_(context),
        gate_(gate),
        files_(files),
        meter_(backend, RpcMethod::kReflect, context) {}

  void Begin() {
    self_ = shared_from_this();
    if (absl::Status status = CheckMetadata(context_, backend_.limits); !status.ok()) {
      return End(status);
    }
    auto principal = backend_.authenticator.Authorize(context_, Role::kRead);
    if (!principal.ok()) return End(principal.status());
    principal_ = *std::move(principal);
    backend_.stalls.Add(weak_from_this());
    Read();
  }

  bool TakeTurn() override {
    // Under the lock, because gRPC's side of a call that has ended is gone.
    const MutexLock lock(mutex_);
    if (phase_ != Phase::kEntering) return false;
    phase_ = Phase::kReading;
    limit_ = received_ > 0 ? StallLimit() : SmallRequests(backend_, gate_).limit;
    give_up_ = backend_.clock.Now() + limit_;
    StartRead(&incoming_);
    return true;
  }

  void OnReadDone(bool ok) override {
    gate_.Leave(principal_);
    if (context_.IsCancelled()) return End(CancelReason(context_, meter_.age()));
    if (!ok) return End(absl::OkStatus());
    const auto request = ParseRequest<ServerReflectionRequest>(incoming_, {.bytes = kMostBytes});
    if (!request.ok()) return End(request.status());
    outgoing_ = ToBuffer(files_.Answer(*request).SerializeAsString());
    const MutexLock lock(mutex_);
    if (phase_ != Phase::kReading) return;
    phase_ = Phase::kWriting;
    received_ += incoming_.Length();
    sent_ += outgoing_.Length();
    give_up_ = backend_.clock.Now() + StallLimit();
    StartWrite(&outgoing_);
  }

  void OnWriteDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      phase_ = Phase::kEntering;
      give_up_ = absl::InfiniteFuture();
    }
    if (!ok || context_.IsCancelled()) return End(CancelReason(context_, meter_.age()));
    Read();
  }

  // What is written then ends at once.
  void OnCancel() override { End(CancelReason(context_, meter_.age())); }

  void OnDone() override {
    {
      const MutexLock lock(mutex_);
      phase_ = Phase::kDone;
      give_up_ = absl::InfiniteFuture();
    }
    self_.reset();
  }

  void CheckStall(absl::Time now) override {
    absl::Status why;
    {
      const MutexLock lock(mutex_);
      if (now < give_up_) return;
      if (phase_ != Phase::kReading) {  // The client does not take an answer, or the last word.
        give_up_ = absl::InfiniteFuture();
        return context_.TryCancel();
      }
      why = TooSlow(limit_);
    }
    End(why);
  }

  void Drain(const absl::Status& why, bool /*grace_over*/) override { End(why); }

 private:
  // Entering: not yet let in by the gate. Ended: gRPC was told to finish.
  enum class Phase : std::uint8_t { kEntering, kReading, kWriting, kEnded, kDone };

  absl::Duration StallLimit() const { return absl::Seconds(backend_.limits.stream_stall_seconds); }

  void Read() {
    incoming_.Clear();
    switch (gate_.Enter(principal_, weak_from_this(), /*has_read=*/received_ > 0)) {
      case ReadGate::Entry::kNow:
        if (!TakeTurn()) gate_.Leave(principal_);
        return;
      case ReadGate::Entry::kLater:
        return;
      case ReadGate::Entry::kFull:
        End(gate_.Full());
    }
  }

  // Unless it has ended, or a write is under way, behind which nothing may be said: where the
  // client does not take it, CheckStall ends it.
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (phase_ != Phase::kEntering && phase_ != Phase::kReading) return;
      phase_ = Phase::kEnded;
      give_up_ = backend_.clock.Now() + StallLimit();
    }
    meter_.Bytes(received_, sent_);
    meter_.Finish(status, {.client = principal_});
    Finish(EndOf(context_, status));
  }

  Backend& backend_;
  grpc::CallbackServerContext& context_;
  ReadGate& gate_;
  const ServiceFiles& files_;
  CallMeter meter_;
  std::string principal_;
  grpc::ByteBuffer incoming_, outgoing_;  // Of the read and the write that are under way.
  Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kEntering;
  absl::Time give_up_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Duration limit_ ABSL_GUARDED_BY(mutex_);  // Of the read that is under way.
  std::uint64_t received_ = 0, sent_ = 0;  // Written under the lock, while the call has not ended.
  // gRPC knows this call by its bare address until OnDone; others may share it.
  std::shared_ptr<ReflectionCall> self_;
};

}  // namespace

ServiceFiles::ServiceFiles() {
  namespace health = grpc::health::v1;
  for (const FileDescriptor* file :
       {v1::KernelSpec::descriptor()->file(), v1::RunRequest::descriptor()->file(),
        v1::ServerInfo::descriptor()->file(), v1::Module::descriptor()->file(),
        v1::ListJobsRequest::descriptor()->file(), health::HealthCheckRequest::descriptor()->file(),
        ServerReflectionRequest::descriptor()->file(),
        google::rpc::ErrorInfo::descriptor()->file()}) {  // Of what a status has beside its text.
    Add(*file);
  }
  std::sort(services_.begin(), services_.end());
}

void ServiceFiles::Add(const FileDescriptor& file) {
  if (pool_.FindFileByName(file.name()) != nullptr) return;
  for (int i = 0; i < file.dependency_count(); ++i) Add(*file.dependency(i));
  FileDescriptorProto proto;
  file.CopyTo(&proto);
  pool_.BuildFile(proto);
  for (int i = 0; i < file.service_count(); ++i) {
    services_.push_back(file.service(i)->full_name());
  }
}

ServerReflectionResponse ServiceFiles::Answer(const ServerReflectionRequest& request) const {
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename: {
      const std::string& name = request.file_by_filename();
      SetFile(pool_.FindFileByName(name), name, &response);
      break;
    }
    case ServerReflectionRequest::kFileContainingSymbol: {
      const std::string& name = request.file_containing_symbol();
      SetFile(pool_.FindFileContainingSymbol(name), name, &response);
      break;
    }
    case ServerReflectionRequest::kFileContainingExtension: {
      const auto& wanted = request.file_containing_extension();
      const std::string& type = wanted.containing_type();
      SetFile(FileOfExtension(pool_, type, wanted.extension_number()),
              absl::StrCat(type, " ", wanted.extension_number()), &response);
      break;
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      SetExtensions(pool_, request.all_extension_numbers_of_type(), &response);
      break;
    case ServerReflectionRequest::kListServices:
      response.mutable_list_services_response();  // Set, also if it were empty.
      for (const std::string& name : services_) {
        response.mutable_list_services_response()->add_service()->set_name(name);
      }
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      SetError(absl::StatusCode::kUnimplemented, "nothing that is known here was asked", &response);
  }
  return response;
}

ReflectionService::ReflectionService(Backend& backend)
    : requests_(backend.limits.rpc_bytes * kQuestionsOfOne, backend.limits) {
  Add(RpcMethod::kReflect, [this, &backend](grpc::CallbackServerContext* context) {
    return BeginCall<ReflectionCall>(backend, *context, requests_, files_);
  });
}

}  // namespace gridclock
