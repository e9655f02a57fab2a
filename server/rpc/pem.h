// Certificates and private keys as text: gRPC takes wrong ones without a word, and then no client
// can connect.
#ifndef GRIDCLOCK_SERVER_RPC_PEM_H_
#define GRIDCLOCK_SERVER_RPC_PEM_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gridclock {

// Whether the first block of `pem` is a certificate.
bool IsCertificate(const std::string& pem);
// Until when all certificates of `chain` are valid: clients may refuse it once one has expired. One
// behind the first that had when the chain was `read` does not count: who used it knew another way.
// The infinite past if the first is none.
absl::Time ExpiryOf(const std::string& chain, absl::Time read);
// Whether `pem` is a private key that can be read without a password.
bool IsPrivateKey(const std::string& pem);
// Whether `key` belongs to the first certificate of `chain`.
bool KeyBelongsTo(const std::string& key, const std::string& chain);

enum class CertificateUse { kServe, kAskClients };
// What OpenSSL would say at each handshake, to nobody, against one of the certificates in `pem`,
// such as a key too small for its security level: INVALID_ARGUMENT, as for one that cannot be read
// behind others, which it would take for their end. To serve, the first is the server's own; all
// others are authorities.
absl::Status CheckUsable(const std::string& pem, CertificateUse use);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_PEM_H_
