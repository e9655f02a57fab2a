#include "server/rpc/pem.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

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
using Context = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

Bio Text(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// OpenSSL would ask on the terminal.
int NoPassword(char*, int, int, void*) {
  return -1;
}

// Null: why stands in OpenSSL's queue of errors.
Certificate NextCertificate(const Bio& text) {
  ERR_clear_error();
  return Certificate(PEM_read_bio_X509(text.get(), nullptr, &NoPassword, nullptr));
}

Certificate ReadCertificate(const std::string& pem) {
  return NextCertificate(Text(pem));
}

Key ReadKey(const std::string& pem) {
  return Key(PEM_read_bio_PrivateKey(Text(pem).get(), nullptr, &NoPassword, nullptr));
}

// Whether the last line of `pem` is a piece of the line that begins a certificate: to OpenSSL that
// is a remark behind the last one.
bool EndsInFirstLine(absl::string_view pem) {
  constexpr absl::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  const absl::string_view last = pem.substr(pem.rfind('\n') + 1);
  return !last.empty() && absl::StartsWith(kBegin, last);
}

// OK if there is no certificate behind the last one, which was that before `number`; it could also
// be one of which a piece is missing.
absl::Status CheckEnd(const std::string& pem, int number) {
  const unsigned long error = ERR_peek_last_error();
  const bool none =
      ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (none && !EndsInFirstLine(pem)) return absl::OkStatus();
  const char* why = none ? nullptr : ERR_reason_error_string(error);
  return absl::InvalidArgumentError(absl::StrCat("certificate number ", number, " cannot be read (",
                                                 why == nullptr ? "it has no end" : why,
                                                 "): is the file cut short?"));
}

absl::Time EndOf(const X509& certificate) {
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &end) != 1) return absl::InfinitePast();
  return absl::FromTM(end, absl::UTCTimeZone());
}

}  // namespace

bool IsCertificate(const std::string& pem) {
  const absl::Cleanup forget = [] { ERR_clear_error(); };
  return ReadCertificate(pem) != nullptr;
}

absl::Time ExpiryOf(const std::string& chain, absl::Time read) {
  const absl::Cleanup forget = [] { ERR_clear_error(); };
  const Bio text = Text(chain);
  std::optional<absl::Time> earliest;
  while (const Certificate certificate = NextCertificate(text)) {
    const absl::Time end = EndOf(*certificate);
    if (!earliest || end > read) earliest = std::min(end, earliest.value_or(end));
  }
  return earliest.value_or(absl::InfinitePast());
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

absl::Status CheckUsable(const std::string& pem, CertificateUse use) {
  const absl::Cleanup forget = [] { ERR_clear_error(); };
  const Context context(SSL_CTX_new(TLS_server_method()));
  const Bio text = Text(pem);
  int number = 1;
  for (; const Certificate certificate = NextCertificate(text); ++number) {
    const bool own = use == CertificateUse::kServe && number == 1;
    ERR_clear_error();
    const long taken = own ? SSL_CTX_use_certificate(context.get(), certificate.get())
                           : SSL_CTX_add1_chain_cert(context.get(), certificate.get());
    if (taken == 1) continue;
    const char* why = ERR_reason_error_string(ERR_peek_last_error());
    return absl::InvalidArgumentError(absl::StrCat("OpenSSL takes no such certificate (number ",
                                                   number, "): ", why == nullptr ? "" : why));
  }
  return CheckEnd(pem, number);
}

}  // namespace gridclock
