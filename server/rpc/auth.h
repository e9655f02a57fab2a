// Who calls, and what they may do. docs/security.md describes the token file.
#ifndef GRIDCLOCK_SERVER_RPC_AUTH_H_
#define GRIDCLOCK_SERVER_RPC_AUTH_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <grpcpp/server_context.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gridclock {

enum class Role : std::uint8_t { kRead = 1, kRun = 2, kSubmit = 4, kAdmin = 8 };
using Roles = std::uint8_t;  // Of Role, added up.

using TokenHash = std::array<unsigned char, 32>;

// The words that stand for a token in the token file: "sha256:SALT:DIGEST", the SHA-256 of the salt
// (hexadecimal, as written) followed by the token.
std::string HashToken(absl::string_view token, absl::string_view salt);
std::string NewSalt();

// A parsed token file: lines "NAME ROLE[,ROLE...] sha256:SALT:DIGEST", empty ones, and comments
// that begin with '#'. Immutable.
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
  // Null if nobody has this token. Takes as long whether it is found first, last or not at all.
  const Entry* Find(absl::string_view token) const;

 private:
  std::vector<Entry> entries_;
};

struct Principal {
  std::string name;
  Roles roles = 0;
};

// How calls are told apart. Thread-safe, holds no lock.
class Authenticator {
 public:
  enum class Peers { kLocal, kCertificate, kAnyone };

  // Without tokens: kLocal: all are the principal `local`; kCertificate: the common name of the
  // client's certificate; kAnyone: the address of the peer. Only kLocal may submit, and only where
  // `local_submits`.
  enum class LocalSubmits : bool { kNo, kYes };
  explicit Authenticator(Peers peers, LocalSubmits local_submits = LocalSubmits::kNo)
      : peers_(peers), local_submits_(local_submits) {}
  explicit Authenticator(TokenFile tokens) : tokens_(std::move(tokens)), has_tokens_(true) {}

  // UNAUTHENTICATED (one text for all that can be wrong with a token), or PERMISSION_DENIED naming
  // the role that is missing.
  absl::StatusOr<std::string> Authorize(const grpc::CallbackServerContext& context,
                                        Role role) const;

 private:
  Roles LocalRoles() const;
  absl::StatusOr<Principal> Identify(const grpc::CallbackServerContext& context) const;
  absl::StatusOr<Principal> ByToken(const grpc::CallbackServerContext& context) const;

  Peers peers_ = Peers::kLocal;
  LocalSubmits local_submits_ = LocalSubmits::kNo;
  TokenFile tokens_;
  bool has_tokens_ = false;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_AUTH_H_
