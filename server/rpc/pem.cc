#include "server/rpc/pem.h"

#include <ctime>
#include <memory>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "absl/cleanup/cleanup.h"

namespace gridclock {
namespace {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

Bio Text(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// OpenSSL would ask on the terminal.
int NoPassword(char*, int, int, void*) {
  return -1;
}

Certificate ReadCertificate(const std::string& pem) {
  return Certificate(PEM_read_bio_X509(Text(pem).get(), nullptr, &NoPassword, nullptr));
}

Key ReadKey(const std::string& pem) {
  return Key(PEM_read_bio_PrivateKey(Text(pem).get(), nullptr, &NoPassword, nullptr));
}

}  // namespace

bool IsCertificate(const std::string& pem) {
  const absl::Cleanup forget = [] { ERR_clear_error(); };
  return ReadCertificate(pem) != nullptr;
}

absl::Time ExpiryOf(const std::string& chain) {
  const absl::Cleanup forget = [] { ERR_clear_error(); };
  const Certificate certificate = ReadCertificate(chain);
  std::tm end{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return absl::InfinitePast();
  }
  return absl::FromTM(end, absl::UTCTimeZone());
}

bool IsPrivateKey(const std::string& pem) {
  const absl::Cleanup forget = [] { ERR_clear_error(); };
  return ReadKey(pem) != nullptr;
}

bool KeyBelongsTo(const std::string& key, const std::string& chain) {
  const absl::Cleanup forget = [] { ERR_clear_error(); };
  const Certificate certificate = ReadCertificate(chain);
  const Key own = ReadKey(key);
  return certificate != nullptr && own != nullptr &&
         X509_check_private_key(certificate.get(), own.get()) == 1;
}

}  // namespace gridclock
