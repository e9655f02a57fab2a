#include "client/cli/command.h"

#include <cstdlib>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "client/cli/format.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cpp/file.h"

namespace gridclock::cli {
namespace {

constexpr char kUsageUrl[] = "gridclock.cli/usage";

absl::Status ReadInto(const std::string& path, std::string* out) {
  if (path.empty()) return absl::OkStatus();
  GC_ASSIGN_OR_RETURN(*out, ReadSmallFile(path));
  return absl::OkStatus();
}

// gRPC's own words when no connection stands; with a reason it is the server that speaks.
bool IsUnreachable(const absl::Status& error) {
  return absl::IsUnavailable(error) && DetailsOf(error).reason.empty();
}

std::string InGiB(double bytes) {
  return absl::StrFormat("%.3g GiB", bytes / 1073741824.0);
}

// Of a call that can never fit: the sizes for people, and what can be done.
std::string SizeAdvice(const absl::Status& error) {
  std::map<std::string, std::string> said = DetailsOf(error).metadata;
  double needed = 0, allowed = 0;
  if (!absl::SimpleAtod(said["needed"], &needed) || !absl::SimpleAtod(said["value"], &allowed)) {
    return "";
  }
  const std::string& limit = said["limit"];
  const std::string more =
      limit == "device_memory"
          ? "choose a device with more memory"
          : absl::StrCat("start the server with a larger --limit-",
                         absl::StrReplaceAll(limit, {{"_", "-"}}));
  return absl::StrCat("it needs ", InGiB(needed), " and ", InGiB(allowed),
                      " are allowed: use smaller tensors, or ", more);
}

}  // namespace

absl::Status UsageError(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsageUrl, absl::Cord());
  return status;
}

bool IsUsageError(const absl::Status& status) {
  return status.GetPayload(kUsageUrl).has_value();
}

absl::StatusOr<ClientOptions> Session::MakeClientOptions() const {
  ClientOptions out;
  out.server = options.server;
  out.allow_plaintext_token = options.insecure_token;
  if (!options.token_file.empty()) {
    GC_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(options.token_file));
    out.token = std::string(absl::StripAsciiWhitespace(text));
  } else if (const char* token = std::getenv("GRIDCLOCK_TOKEN")) {
    out.token = token;
  }
  // Any word of TLS asks for TLS: a call in plain text would be the silent opposite of it.
  const bool none = options.tls_ca.empty() && options.tls_cert.empty() && options.tls_key.empty() &&
                    options.tls_name.empty();
  if (options.tls || !none) {
    TlsOptions& tls = out.tls.emplace();
    GC_RETURN_IF_ERROR(ReadInto(options.tls_ca, &tls.ca_pem));
    GC_RETURN_IF_ERROR(ReadInto(options.tls_cert, &tls.cert_pem));
    GC_RETURN_IF_ERROR(ReadInto(options.tls_key, &tls.key_pem));
    tls.expected_name = options.tls_name;
  }
  return out;
}

absl::StatusOr<std::unique_ptr<Client>> Session::Connect() const {
  GC_ASSIGN_OR_RETURN(const ClientOptions client_options, MakeClientOptions());
  return Client::Connect(client_options);
}

absl::StatusOr<absl::Duration> Session::Timeout() const {
  if (options.timeout.empty()) return absl::InfiniteDuration();
  auto timeout = ParseSeconds(options.timeout);
  if (!timeout.ok()) return UsageError(absl::StrCat("--timeout: ", timeout.status().message()));
  return timeout;
}

absl::StatusOr<absl::Duration> ParseKernelLimit(const std::string& text) {
  if (text.empty()) return absl::ZeroDuration();
  auto limit = ParseSeconds(text);
  if (!limit.ok()) return UsageError(absl::StrCat("--kernel-limit: ", limit.status().message()));
  return limit;
}

std::string Advice(const absl::Status& error, const std::string& server) {
  if (IsUnreachable(error)) {
    return absl::StrCat("no server answers at ", server,
                        "; start one with gridclock-server, or name it with --server HOST:PORT");
  }
  const ErrorDetails details = DetailsOf(error);
  if (details.reason == "KERNEL_TIME_LIMIT" || details.field == "kernel_time_limit_seconds") {
    return "--kernel-limit TIME sets it, up to the server's --limit-max-kernel-seconds";
  }
  switch (error.code()) {
    case absl::StatusCode::kUnauthenticated:
      return "give a token with --token-file FILE or GRIDCLOCK_TOKEN";
    case absl::StatusCode::kPermissionDenied:
      return "ask for a token with the role that it names";
    case absl::StatusCode::kResourceExhausted:
      return details.retry_after.has_value() ? "try again later" : SizeAdvice(error);
    case absl::StatusCode::kUnavailable:
      return "try again later";
    case absl::StatusCode::kInternal:
      return "this is a bug of Gridclock: please report it";
    default:
      return "";
  }
}

int Report(const Session& session, const absl::Status& error) {
  const bool unreachable = IsUnreachable(error);
  if (session.options.json) session.console.out << Dump(ToJson(error)) << "\n";
  std::string line =
      absl::StrCat("gridclock: ", CodeName(error.code()), ": ", Escape(error.message()));
  if (IsUsageError(error)) line = absl::StrCat("gridclock: ", Escape(error.message()));
  const std::string advice = Advice(error, session.options.server);
  if (unreachable) {
    line = absl::StrCat("gridclock: ", Escape(advice), " (", Escape(error.message()), ")");
  } else if (!advice.empty()) {
    absl::StrAppend(&line, "; ", advice);
  }
  session.console.err << line << "\n";
  if (unreachable) return kUnreachable;
  return IsUsageError(error) ? kUsage : kFailed;
}

}  // namespace gridclock::cli
