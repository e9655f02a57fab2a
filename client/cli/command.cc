#include "client/cli/command.h"

#include <cstdlib>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "client/cli/format.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/status_source.h"
#include "client/cpp/file.h"

namespace gridclock::cli {
namespace {

constexpr char kUsageUrl[] = "gridclock.cli/usage";

// Reads the PEM of a flag. gRPC would take any text, and then say that there is no address.
absl::StatusOr<std::string> ReadPem(absl::string_view flag, const std::string& path,
                                    absl::string_view kind) {
  if (path.empty()) return std::string();
  const auto read = ReadSmallFile(path);
  if (!read.ok()) return Annotate(read.status(), flag);
  const std::string& text = *read;
  if (absl::StrContains(text, absl::StrCat(kind, "-----"))) return text;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": no ", kind, " in PEM in ", path,
                   absl::StrContains(text, "PRIVATE KEY-----") ? "; it holds a private key" : ""));
}

absl::Status ReadTls(const GlobalOptions& options, TlsOptions* tls) {
  tls->expected_name = options.tls_name;
  GC_ASSIGN_OR_RETURN(tls->ca_pem, ReadPem("--tls-ca", options.tls_ca, "CERTIFICATE"));
  GC_ASSIGN_OR_RETURN(tls->cert_pem, ReadPem("--tls-cert", options.tls_cert, "CERTIFICATE"));
  if (options.tls_key.empty()) return absl::OkStatus();
  if (!options.tls_cert.empty()) {
    GC_ASSIGN_OR_RETURN(tls->key_pem, ReadPem("--tls-key", options.tls_key, "PRIVATE KEY"));
    return absl::OkStatus();
  }
  GC_ASSIGN_OR_RETURN(tls->key_pem, ReadSmallFile(options.tls_key));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  const auto read = ReadSmallFile(path);
  if (!read.ok()) return Annotate(read.status(), "--token-file");
  const std::string& text = *read;
  if (absl::StrContains(text, " sha256:")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--token-file ", path,
                     ": this looks like the server's file of hashes; want the token itself"));
  }
  return std::string(absl::StripAsciiWhitespace(text));
}

// Where the token is from that is sent; "" if there is none.
std::string TokenSource(const GlobalOptions& options) {
  if (!options.token_file.empty()) return options.token_file;
  const char* token = std::getenv("GRIDCLOCK_TOKEN");
  return token == nullptr || *token == '\0' ? "" : "GRIDCLOCK_TOKEN";
}

std::string TokenAdvice(const GlobalOptions& options) {
  const std::string from = TokenSource(options);
  return from.empty() ? "give a token with --token-file FILE or GRIDCLOCK_TOKEN"
                      : absl::StrCat("the server does not know the token of ", from);
}

// Any word of TLS asks for TLS: a call in plain text would be the silent opposite of it.
bool SpeaksTls(const GlobalOptions& options) {
  return options.tls || !options.tls_ca.empty() || !options.tls_cert.empty() ||
         !options.tls_key.empty() || !options.tls_name.empty();
}

// Why no connection stands, as far as gRPC's words tell.
std::string ConnectionAdvice(absl::string_view said, const GlobalOptions& options) {
  const std::string& server = options.server;
  const std::string lower = absl::AsciiStrToLower(said);
  const auto has = [&](absl::string_view words) { return absl::StrContains(lower, words); };
  if (has("certificate verify failed") || has("certificate_verify_failed")) {
    return absl::StrCat("the certificate of ", server,
                        " is not from an authority that is trusted here; name its authority with "
                        "--tls-ca FILE");
  }
  if (has("is not in peer certificate")) {
    return absl::StrCat("the certificate of ", server,
                        " is for another name; say that name with --tls-name NAME");
  }
  if (has("wrong version number") || has("wrong_version_number")) {
    return absl::StrCat(server, " does not speak TLS; leave out --tls and its relatives");
  }
  if (has("failed parsing http/2") || has("http1.x server"))
    return absl::StrCat(server, " is no gRPC port; is it the one of the metrics?");
  return absl::StrCat("no server answers at ", server,
                      "; start one with gridclock-server or ./dev up, or name it with --server "
                      "HOST:PORT",
                      !has("socket closed") ? ""
                      : !SpeaksTls(options) ? "; or it speaks TLS: --tls-ca FILE"
                      : options.tls_cert.empty()
                          ? "; or it wants a certificate of yours: --tls-cert and --tls-key"
                          : "; or it does not take the certificate of --tls-cert",
                      has("socket closed") || has("connection reset")
                          ? "; or the server takes no more connections from this address"
                          : "");
}

// Of a call that can never fit: what can be done. The server has said the sizes.
std::string SizeAdvice(const absl::Status& error) {
  const std::map<std::string, std::string> said = DetailsOf(error).metadata;
  const auto limit = said.find("limit");
  if (limit == said.end() || !said.contains("needed")) return "";
  const std::string more = limit->second == "device_memory"
                               ? "choose a device with more memory"
                               : absl::StrCat("start the server with a larger --limit-",
                                              absl::StrReplaceAll(limit->second, {{"_", "-"}}));
  return absl::StrCat("use smaller tensors, or ", more);
}

}  // namespace

bool IsUnreachable(const absl::Status& error) {
  return absl::IsUnavailable(error) && DetailsOf(error).reason.empty();
}

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
  GC_ASSIGN_OR_RETURN(const absl::Duration timeout, Timeout());
  if (!options.timeout.empty()) out.timeout = timeout;
  if (!options.token_file.empty()) {
    GC_ASSIGN_OR_RETURN(out.token, ReadToken(options.token_file));
  } else if (const char* token = std::getenv("GRIDCLOCK_TOKEN")) {
    out.token = token;
  }
  if (SpeaksTls(options)) {
    GC_RETURN_IF_ERROR(ReadTls(options, &out.tls.emplace()));
  }
  return out;
}

absl::StatusOr<std::unique_ptr<Client>> Session::Connect() const {
  GC_ASSIGN_OR_RETURN(const ClientOptions client_options, MakeClientOptions());
  auto client = Client::Connect(client_options);
  // No address: nothing was sent.
  if (!client.ok() && absl::StartsWith(client.status().message(), "server: ")) {
    return UsageError(absl::StrCat("--", client.status().message()));
  }
  return client;
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

std::string Advice(const absl::Status& error, const GlobalOptions& options) {
  if (IsUnreachable(error)) return ConnectionAdvice(error.message(), options);
  const ErrorDetails details = DetailsOf(error);
  const auto limit = details.metadata.find("limit");
  const std::string limit_name = limit == details.metadata.end() ? "" : limit->second;
  if (details.reason == "KERNEL_TIME_LIMIT" || details.field == "kernel_time_limit_seconds") {
    const bool submitted = absl::StartsWith(limit_name, "submitted");
    return absl::StrCat("--kernel-limit TIME sets it, up to the server's --limit-",
                        submitted ? "submitted" : "max", "-kernel-seconds");
  }
  if (details.reason == "COMPILE_FAILED" &&
      absl::StrContains(error.message(), "a template needs a name expression")) {
    return "if it has a template, name an instance: compile --instance 'NAME<float, 256>', or to "
           "run it "
           "FILE.cu:'NAME<float, 256>'";
  }
  if (limit_name == "client_modules" || limit_name == "module_memory_bytes") {
    return "gridclock modules lists yours, gridclock modules delete ID... deletes some";
  }
  switch (error.code()) {
    case absl::StatusCode::kUnauthenticated:
      return TokenAdvice(options);
    case absl::StatusCode::kPermissionDenied:
      // A server that knows no tokens says which flag it wants.
      return absl::StrContains(error.message(), "start the server")
                 ? ""
                 : "ask for a token with the role that it names";
    case absl::StatusCode::kResourceExhausted:
      return details.retry_after.has_value() ? "try again later" : SizeAdvice(error);
    case absl::StatusCode::kUnavailable:
      return "try again later";
    case absl::StatusCode::kNotFound:
      return details.field == "kernel" ? "see gridclock list" : "";
    case absl::StatusCode::kInternal:
      return "this is a bug of Gridclock: please report it";
    default:
      return "";
  }
}

int Report(const Session& session, const absl::Status& error) {
  const bool unreachable = IsUnreachable(error);
  const bool no_page = DetailsOf(error).reason == kStatusUnreachable;
  if (session.options.json) session.console.out << Dump(ToJson(error)) << "\n";
  std::string line =
      absl::StrCat("gridclock: ", CodeName(error.code()), ": ", Escape(error.message()));
  if (IsUsageError(error)) line = absl::StrCat("gridclock: ", Escape(error.message()));
  if (absl::IsDeadlineExceeded(error) && DetailsOf(error).reason.empty() &&
      !session.options.timeout.empty()) {
    line = absl::StrCat("gridclock: not done within ", session.options.timeout,
                        " (--timeout): ", Escape(error.message()));
  }
  const std::string advice = Advice(error, session.options);
  if (no_page) {
    line = absl::StrCat("gridclock: ", Escape(error.message()));  // It says what to do.
  } else if (unreachable) {
    line = absl::StrCat("gridclock: ", Escape(advice), " (", Escape(error.message()), ")");
  } else if (!advice.empty()) {
    absl::StrAppend(&line, "; ", advice);
  }
  session.console.err << line << "\n";
  if (unreachable || no_page) return kUnreachable;
  return IsUsageError(error) ? kUsage : kFailed;
}

}  // namespace gridclock::cli
