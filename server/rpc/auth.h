// Who calls, and what they may do. docs/security.md describes the token file.
#ifndef GRIDCLOCK_SERVER_RPC_AUTH_H_
#define GRIDCLOCK_SERVER_RPC_AUTH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/server_context.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace gridclock {

enum class Role : std::uint8_t { kRead = 1, kRun = 2, kSubmit = 4, kAdmin = 8 };
using Roles = std::uint8_t;  // Of Role, added up.

constexpr std::size_t kMaxToken = 256;  // Bytes.
using TokenHash = std::array<unsigned char, 32>;

// The words that stand for a token in the token file: "sha256:SALT:DIGEST", the SHA-256 of the salt
// (hexadecimal, as written) followed by the token.
std::string HashToken(absl::string_view token, absl::string_view salt);
std::string NewSalt();

// A parsed token file: lines "NAME ROLE[,ROLE...] sha256:SALT:DIGEST", empty ones, and comments
// that begin with '#'. Names are of printable ASCII. Immutable.
class TokenFile {
 public:
  // INVALID_ARGUMENT names the line, and never shows what stands in it.
  static absl::StatusOr<TokenFile> Parse(absl::string_view text);

  struct Entry {
    std::string name;
    Roles roles = 0;
    std::string salt;
    TokenHash hash{};
  };
  // Null if nobody has this token, and for one of more than kMaxToken bytes: each costs a hash of
  // it for every line. Takes as long whether it is found first, last or not at all.
  const Entry* Find(absl::string_view token) const;

 private:
  std::vector<Entry> entries_;
};

struct Principal {
  std::string name;
  Roles roles = 0;
};

// How calls are told apart. Thread-safe.
class Authenticator {
 public:
  enum class Peers { kLocal, kCertificate, kAnyone };

  // Without tokens: kLocal: all are the principal `local`; kCertificate: the common name of the
  // client's certificate; kAnyone: the peer, by SiteOf(). All may read and run; only kLocal may
  // do more, which is `local`: other people of this machine are local too.
  explicit Authenticator(Peers peers, Roles local = 0) : peers_(peers), local_(local) {}
  explicit Authenticator(TokenFile tokens);

  // From the next call on these tokens hold. Only of one that has tokens.
  void Replace(TokenFile tokens);

  // UNAUTHENTICATED (one text for all that can be wrong with a token), or PERMISSION_DENIED naming
  // the role that is missing.
  absl::StatusOr<std::string> Authorize(const grpc::CallbackServerContext& context,
                                        Role role) const;
  // Whose call it is, whatever they may do. UNAUTHENTICATED as above.
  absl::StatusOr<Principal> Identify(const grpc::CallbackServerContext& context) const;

 private:
  absl::StatusOr<Principal> ByToken(const grpc::CallbackServerContext& context) const;

  struct Tokens {
    Mutex mutex;
    std::shared_ptr<const TokenFile> file ABSL_GUARDED_BY(mutex);
  };

  Peers peers_ = Peers::kLocal;
  Roles local_ = 0;
  std::shared_ptr<Tokens> tokens_;  // Null: nobody needs one.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_AUTH_H_
