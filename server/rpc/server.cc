#include "server/rpc/server.h"

#include <optional>
#include <utility>

#include <grpcpp/server_builder.h>

#include "base/log.h"
#include "server/core/read_gate.h"
#include "server/rpc/admin.h"
#include "server/rpc/connection_calls.h"
#include "server/rpc/grpc_log.h"
#include "server/rpc/health_service.h"
#include "server/rpc/modules.h"
#include "server/rpc/reflection.h"
#include "server/rpc/services.h"
#include "server/rpc/unknown_methods.h"
#include "server/rpc/watched_reads.h"

namespace gridclock {
namespace {

using grpc::experimental::ExternalConnectionAcceptor;

int Millis(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

void Configure(const RpcServer::Options& options, const Limits& limits,
               grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(MostCollected(limits)));
  builder->SetMaxSendMessageSize(-1);
  // Not what slows clients down, which is the window: a fuse, behind which gRPC ends calls.
  builder->SetResourceQuota(
      grpc::ResourceQuota("rpc").Resize(static_cast<std::size_t>(limits.rpc_bytes)));
  // A few hundred KB of gzip unpack to hundreds of MiB before gRPC looks at the message's size.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  const std::pair<const char*, int> arguments[] = {
      {GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(limits.metadata_bytes)},
      {GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(limits.streams)},
      // A fixed window bounds memory; the probe lets a fast client buffer 100 MiB in here.
      {GRPC_ARG_HTTP2_BDP_PROBE, 0},
      {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, static_cast<int>(limits.window_bytes)},
      {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Millis(options.handshake_timeout)},
      {GRPC_ARG_MAX_CONNECTION_IDLE_MS, Millis(options.connection_idle)},
      {GRPC_ARG_KEEPALIVE_TIME_MS, Millis(options.keepalive)},
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Millis(options.keepalive_timeout)},
      {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
      {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 20000},
      {GRPC_ARG_ALLOW_REUSEPORT, 0},
  };
  for (const auto& [name, value] : arguments) builder->AddChannelArgument(name, value);
}

class RpcServerImpl final : public RpcServer {
 public:
  RpcServerImpl(Backend& backend, Acceptor& acceptor)
      : backend_(backend),
        health_service_(backend, health_),
        kernels_(backend),
        system_(backend),
        modules_(backend),
        admin_(backend),
        acceptor_(acceptor) {}

  absl::Status Start(const Options& options) {
    if (absl::Status status = ReadsAreWatched(); !status.ok()) return status;
    grpc::ServerBuilder builder;
    Configure(options, backend_.limits, &builder);
    doors_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        CredentialsOf(options.tls));
    health_.Update({}, ServerState::kStarting, /*alive=*/true);
    builder.RegisterService(&health_service_);
    builder.RegisterService(&kernels_);
    builder.RegisterService(&system_);
    builder.RegisterService(&modules_);
    builder.RegisterService(&admin_);
    if (options.reflection) builder.RegisterService(&reflection_.emplace(backend_));
    builder.RegisterCallbackGenericService(&unknown_methods_);
    CallsOfConnections().SetStreams(static_cast<int>(backend_.limits.streams));
    // Clients of gRPC say no more of a call that the server ended amid a message: those count too.
    constexpr std::size_t kMostEnded = 1 << 16;
    SetMessageBounds(
        {.most_bytes = static_cast<std::uint32_t>(MostCollected(backend_.limits)),
         .most_begun = kMostEnded + static_cast<std::size_t>(backend_.limits.streams)});
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return absl::InvalidArgumentError(
          "gRPC refused to start; are certificate and key a pair, both PEM?");
    }
    acceptor_.Start([this, plain = options.tls == nullptr](UniqueFd fd) {
      const int number = fd.get();
      const auto hand_over = [this, &fd] {
        ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.fd = fd.release();
        doors_->HandleNewConnection(&connection);
      };
      const absl::Status status =
          plain ? WatchReads(number) : WatchEncryptedReads(number, hand_over);
      if (!status.ok()) {
        return Log(LogLevel::kWarning, "connection_refused",
                   {{"reason", std::string(status.message())}});
      }
      if (plain) hand_over();
    });
    return absl::OkStatus();
  }

  Health& health() override { return health_; }

  void Shutdown(absl::Duration grace) override {
    acceptor_.Stop();
    server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
    server_->Wait();
  }

 private:
  Backend& backend_;
  Health health_;
  HealthService health_service_;
  KernelService kernels_;
  SystemService system_;
  ModuleService modules_;
  AdminService admin_;
  std::optional<ReflectionService> reflection_;
  UnknownMethods unknown_methods_;
  Acceptor& acceptor_;
  std::unique_ptr<ExternalConnectionAcceptor> doors_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Create(const Options& options,
                                                             Backend& backend, Acceptor& acceptor) {
  TameGrpcLog();
  auto server = std::make_unique<RpcServerImpl>(backend, acceptor);
  if (absl::Status status = server->Start(options); !status.ok()) return status;
  return server;
}

}  // namespace gridclock
