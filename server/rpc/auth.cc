#include "server/rpc/auth.h"

#include <algorithm>
#include <utility>

#include <grpcpp/security/auth_context.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "server/rpc/peer.h"

namespace gridclock {
namespace {

constexpr absl::string_view kScheme = "Bearer ";
constexpr Roles kUsual = static_cast<Roles>(Role::kRead) | static_cast<Roles>(Role::kRun);

struct RoleName {
  Role role;
  absl::string_view name;
};
constexpr RoleName kRoles[] = {
    {Role::kRead, "read"}, {Role::kRun, "run"}, {Role::kSubmit, "submit"}, {Role::kAdmin, "admin"}};

TokenHash Sha256(absl::string_view salt, absl::string_view token) {
  const std::string text = absl::StrCat(salt, token);
  TokenHash hash;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  return hash;
}

bool IsHex(absl::string_view text) {
  return !text.empty() && text.size() % 2 == 0 && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
}

// "'exec'", a word that is no role. Only one that is like a role is said: it may be a token or a
// hash in the place of the roles.
std::string QuotedRole(absl::string_view word) {
  constexpr std::size_t kMostLetters = 12;
  const bool is_like_one =
      word.size() <= kMostLetters && std::all_of(word.begin(), word.end(), absl::ascii_isalpha);
  return is_like_one ? absl::StrCat("'", word, "'") : "another word";
}

// Or the word that is none.
absl::StatusOr<Roles> ParseRoles(absl::string_view text) {
  Roles roles = 0;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const auto* known = std::find_if(std::begin(kRoles), std::end(kRoles),
                                     [&](const RoleName& r) { return r.name == word; });
    if (known == std::end(kRoles)) return absl::InvalidArgumentError(QuotedRole(word));
    roles |= static_cast<Roles>(known->role);
  }
  return roles;
}

bool ParseHash(absl::string_view text, TokenFile::Entry* out) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() != 3 || parts[0] != "sha256") return false;
  if (!IsHex(parts[1]) || !IsHex(parts[2]) || parts[2].size() != 2 * out->hash.size()) return false;
  out->salt = parts[1];
  const std::string bytes = absl::HexStringToBytes(parts[2]);
  std::copy(bytes.begin(), bytes.end(), out->hash.begin());
  return true;
}

absl::StatusOr<TokenFile::Entry> ParseLine(absl::string_view line, int number) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("line ", number, ": want ", what));
  };
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() != 3) return wrong("NAME ROLES HASH, separated by spaces");
  if (!std::ranges::all_of(words[0], absl::ascii_isgraph)) {
    return wrong("a name of printable ASCII characters, and it has another: type the name anew");
  }
  TokenFile::Entry entry;
  entry.name = words[0];
  const absl::StatusOr<Roles> roles = ParseRoles(words[1]);
  if (!roles.ok()) {
    return wrong(absl::StrCat("roles out of read, run, submit, admin, separated by commas, got ",
                              roles.status().message()));
  }
  entry.roles = *roles;
  if (!ParseHash(words[2], &entry))
    return wrong("a hash as `gridclock-server --hash-token` prints");
  return entry;
}

absl::Status Unauthenticated() {
  return absl::UnauthenticatedError(
      "want the metadata 'authorization: Bearer TOKEN' once, with a token that this server knows");
}

std::string CommonName(const grpc::AuthContext& context) {
  const auto names = context.FindPropertyValues("x509_common_name");
  return names.empty() ? "" : std::string(names[0].data(), names[0].size());
}

}  // namespace

std::string HashToken(absl::string_view token, absl::string_view salt) {
  const TokenHash hash = Sha256(salt, token);
  const absl::string_view bytes(reinterpret_cast<const char*>(hash.data()), hash.size());
  return absl::StrCat("sha256:", salt, ":", absl::BytesToHexString(bytes));
}

std::string NewSalt() {
  unsigned char bytes[16] = {};
  RAND_bytes(bytes, sizeof(bytes));
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes), sizeof(bytes)));
}

absl::StatusOr<TokenFile> TokenFile::Parse(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // Some editors put this in front of UTF-8.
  TokenFile file;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    GC_ASSIGN_OR_RETURN(Entry entry, ParseLine(line, number));
    file.entries_.push_back(std::move(entry));
  }
  if (file.entries_.empty()) return absl::InvalidArgumentError("it has no token");
  return file;
}

const TokenFile::Entry* TokenFile::Find(absl::string_view token) const {
  if (token.size() > kMaxToken) return nullptr;
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    const TokenHash hash = Sha256(entry.salt, token);
    if (CRYPTO_memcmp(hash.data(), entry.hash.data(), hash.size()) == 0) found = &entry;
  }
  return found;
}

absl::StatusOr<Principal> Authenticator::ByToken(const grpc::CallbackServerContext& context) const {
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  if (begin == end || std::next(begin) != end) return Unauthenticated();
  absl::string_view token(begin->second.data(), begin->second.size());
  if (!absl::ConsumePrefix(&token, kScheme) || token.empty()) return Unauthenticated();
  const std::shared_ptr<const TokenFile> file = [this] {
    MutexLock lock(tokens_->mutex);
    return tokens_->file;
  }();
  const TokenFile::Entry* entry = file->Find(token);
  if (entry == nullptr) return Unauthenticated();
  return Principal{entry->name, entry->roles};
}

Authenticator::Authenticator(TokenFile tokens) : tokens_(std::make_shared<Tokens>()) {
  Replace(std::move(tokens));
}

void Authenticator::Replace(TokenFile tokens) {
  auto file = std::make_shared<const TokenFile>(std::move(tokens));
  MutexLock lock(tokens_->mutex);
  tokens_->file.swap(file);
}

absl::StatusOr<Principal> Authenticator::Identify(
    const grpc::CallbackServerContext& context) const {
  if (tokens_ != nullptr) return ByToken(context);
  switch (peers_) {
    case Peers::kLocal:
      return Principal{"local", static_cast<Roles>(kUsual | local_)};
    case Peers::kCertificate: {
      std::string name = CommonName(*context.auth_context());
      if (name.empty()) {
        return absl::UnauthenticatedError("want a client certificate with a common name");
      }
      return Principal{absl::StrCat("cn:", name), kUsual};
    }
    case Peers::kAnyone:
      return Principal{SiteOf(context.peer()), kUsual};
  }
  return Unauthenticated();
}

absl::StatusOr<std::string> Authenticator::Authorize(const grpc::CallbackServerContext& context,
                                                     Role role) const {
  GC_ASSIGN_OR_RETURN(Principal principal, Identify(context));
  if ((principal.roles & static_cast<Roles>(role)) != 0) return std::move(principal.name);
  const auto* wanted = std::find_if(std::begin(kRoles), std::end(kRoles),
                                    [&](const RoleName& r) { return r.role == role; });
  const std::string by_token = "with --token-file and use a token of that role";
  const std::string lacks =
      tokens_ != nullptr ? "which this token lacks"
      : peers_ == Peers::kLocal
          ? absl::StrCat("which is off: start the server with --allow-", wanted->name, ", or ",
                         by_token)
          : absl::StrCat("which without tokens nobody has here: start the server ", by_token);
  return WithReason(absl::PermissionDeniedError(
                        absl::StrCat("this call needs the role '", wanted->name, "', ", lacks)),
                    "ROLE_MISSING");
}

}  // namespace gridclock
