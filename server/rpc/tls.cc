#include "server/rpc/tls.h"

#include <utility>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

namespace gridclock {
namespace {

// gRPC asks for the certificates at every handshake. Its own credentials for files look for new
// ones by themselves, once a second, whether an operator has finished writing them or not.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsCredentials(std::shared_ptr<const TlsSource> source) : source_(std::move(source)) {
    const auto clients = source_->current().client_authority.empty()
                             ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                             : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(clients, &Fetch, this));
  }
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }
  TlsCredentials(const TlsCredentials&) = delete;
  TlsCredentials& operator=(const TlsCredentials&) = delete;

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // gRPC never calls it from two threads at once.
  static grpc_ssl_certificate_config_reload_status Fetch(void* self,
                                                         grpc_ssl_server_certificate_config** out) {
    auto& own = *static_cast<TlsCredentials*>(self);
    const std::uint64_t version = own.source_->version();
    if (std::exchange(own.told_, version) == version) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    const Tls tls = own.source_->current();
    const grpc_ssl_pem_key_cert_pair pair = {.private_key = tls.key.c_str(),
                                             .cert_chain = tls.certificate.c_str()};
    // gRPC asserts that there are authorities, also where no client is asked for a certificate and
    // none is looked at; then it gets what is sure to be one.
    const std::string& roots =
        tls.client_authority.empty() ? tls.certificate : tls.client_authority;
    *out = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::shared_ptr<const TlsSource> source_;
  grpc_server_credentials* credentials_ = nullptr;
  std::uint64_t told_ = 0;  // The version that gRPC has.
};

}  // namespace

void TlsSource::Replace(Tls tls) {
  MutexLock lock(mutex_);
  tls_ = std::move(tls);
  ++version_;
}

Tls TlsSource::current() const {
  MutexLock lock(mutex_);
  return tls_;
}

std::uint64_t TlsSource::version() const {
  MutexLock lock(mutex_);
  return version_;
}

std::shared_ptr<grpc::ServerCredentials> CredentialsOf(std::shared_ptr<const TlsSource> source) {
  if (source == nullptr) return grpc::InsecureServerCredentials();
  return std::make_shared<TlsCredentials>(std::move(source));
}

}  // namespace gridclock
