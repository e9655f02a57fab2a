#include "server/rpc/unknown_methods.h"

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/rpc/connection_calls.h"
#include "server/rpc/status.h"

namespace gridclock {
namespace {

constexpr std::size_t kMostShown = 200;  // Bytes of a method's name.

absl::Status NoSuchMethod(absl::string_view method) {
  return absl::UnimplementedError(absl::StrCat(
      "no method '", absl::CHexEscape(method.substr(0, kMostShown)), "' here: ",
      absl::StartsWith(method, "/grpc.reflection.")
          ? "want grpc.reflection.v1alpha, of a server that has --reflection=on"
          : "want one of gridclock.v1's KernelService, SystemService, ModuleService and "
            "AdminService, or grpc.health.v1; one that these lack is of a newer server"));
}

class Ended final : public grpc::ServerGenericBidiReactor {
 public:
  Ended(const grpc::CallbackServerContext& context, const grpc::Status& status)
      : of_connection_(CallsOfConnections(), context.peer(), context.client_metadata().size()) {
    Finish(status);
  }
  void OnDone() override { delete this; }

 private:
  const ConnectionCalls::Place of_connection_;
};

}  // namespace

grpc::ServerGenericBidiReactor* UnknownMethods::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  return new Ended(*context, EndOf(*context, NoSuchMethod(context->method())));
}

}  // namespace gridclock
