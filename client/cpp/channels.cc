#include "client/cpp/channels.h"

#include <string>

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

// An address, not a name that looks like one: 127.example.org is somebody else's host.
bool IsLoopbackAddress(const std::string& host) {
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

bool StaysOnThisHost(const std::string& server) {
  const std::string host = server.substr(0, server.rfind(':'));
  return host == "localhost" || host == "[::1]" || IsLoopbackAddress(host);
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(const ClientOptions& options) {
  if (!options.tls.has_value()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = options.tls->ca_pem;
  ssl.pem_cert_chain = options.tls->cert_pem;
  ssl.pem_private_key = options.tls->key_pem;
  return grpc::SslCredentials(ssl);
}

}  // namespace

// gRPC takes "8470/x" and "8470x" for the port 8470.
bool IsHostAndPort(absl::string_view address) {
  const std::size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return false;
  const absl::string_view host = address.substr(0, colon);
  const bool bracketed = absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  std::uint32_t port = 0;
  return absl::SimpleAtoi(address.substr(colon + 1), &port) && port > 0 && port <= 65535 &&
         host.find('/') == absl::string_view::npos && absl::StrContains(host, ":") == bracketed;
}

absl::Status CheckOptions(const ClientOptions& options) {
  if (!IsHostAndPort(options.server)) {
    return absl::InvalidArgumentError(
        absl::StrCat("server: want HOST:PORT, got '", options.server, "'"));
  }
  for (const char c : options.token) {
    if (c <= ' ' || c > '~') return absl::InvalidArgumentError("token: want printable ASCII");
  }
  if (!options.token.empty() && !options.tls.has_value() && !options.allow_plaintext_token &&
      !StaysOnThisHost(options.server)) {
    return absl::InvalidArgumentError(
        absl::StrCat("token: not sent in plain text to '", options.server,
                     "'; use TLS, or say that the network is trusted: allow_plaintext_token, "
                     "on a command line --insecure-token"));
  }
  if (options.tls.has_value() && options.tls->cert_pem.empty() != options.tls->key_pem.empty()) {
    return absl::InvalidArgumentError("tls: a certificate and its key go together");
  }
  return absl::OkStatus();
}

std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options, int window_bytes) {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A fixed window bounds memory; the probe would widen it without end.
  args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, window_bytes);
  // A million samples are 8 MB.
  args.SetMaxReceiveMessageSize(64 << 20);
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // This library knows better what is safe.
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // The least that a connection may take, in spite of its name: some round trips, far from here.
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10'000);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A peer that went away without a word is noticed, and lets go of borrowed memory.
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  if (options.tls.has_value() && !options.tls->expected_name.empty()) {
    args.SetSslTargetNameOverride(options.tls->expected_name);
  }
  return grpc::CreateCustomChannel(options.server, Credentials(options), args);
}

}  // namespace gridclock
