#include "server/options.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <span>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/cgroup.h"
#include "base/log.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "proto/types/near_names.h"
#include "proto/types/quote.h"
#include "server/rpc/pem.h"

namespace gridclock {
namespace {

constexpr absl::string_view kEnvironment = "GRIDCLOCK_";

// "--drain-delay" -> "GRIDCLOCK_DRAIN_DELAY".
std::string EnvironmentOf(absl::string_view flag) {
  return absl::AsciiStrToUpper(
      absl::StrCat(kEnvironment, absl::StrReplaceAll(flag.substr(2), {{"-", "_"}})));
}

template <typename T>
CLI::Option* Flag(CLI::App& app, const std::string& name, T& value, const std::string& help) {
  return app.add_option(name, value, help)->envname(EnvironmentOf(name))->capture_default_str();
}

void Switch(CLI::App& app, const std::string& name, bool& value, const std::string& help) {
  const auto check = [](const std::string& text) -> std::string {
    try {
      CLI::detail::to_flag_value(text);
      return "";
    } catch (const std::logic_error&) {
      return absl::StrCat("want true or false, got ", Quote(text));
    }
  };
  app.add_flag(name, value, help)->envname(EnvironmentOf(name))->check(CLI::Validator(check, ""));
}

struct ByteUnit {
  char letter;
  double bytes;
};
constexpr ByteUnit kByteUnits[] = {
    {'G', 1024.0 * 1024 * 1024}, {'M', 1024.0 * 1024}, {'K', 1024.0}};

// "4.06 MiB".
std::string BytesText(double bytes) {
  for (const ByteUnit& unit : kByteUnits) {
    if (bytes < unit.bytes) continue;
    const std::string digits = absl::StrFormat("%.2f", bytes / unit.bytes);
    const absl::string_view short_digits = absl::StripSuffix(digits, ".00");
    return absl::StrCat(short_digits, " ", std::string(1, unit.letter), "iB");
  }
  return absl::StrCat(bytes);
}

// "64K", "64KB", "64KiB" and "64 KiB" become "65536"; what has no such end stays as it is.
std::string ExpandBytes(std::string& text) {
  absl::string_view digits = text;
  if (!absl::ConsumeSuffix(&digits, "iB")) absl::ConsumeSuffix(&digits, "B");
  for (const ByteUnit& unit : kByteUnits) {
    double value = 0;
    if (!absl::ConsumeSuffix(&digits, std::string(1, unit.letter))) continue;
    if (absl::SimpleAtod(digits, &value)) text = absl::StrFormat("%.17g", value * unit.bytes);
    break;
  }
  return "";
}

// "512 MiB", "1", "0.001".
std::string LeastText(double least, absl::string_view unit) {
  return absl::StartsWith(unit, "bytes") ? BytesText(least) : absl::StrCat(least);
}

CLI::Validator InRange(double least, double most, absl::string_view unit) {
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value >= least && value <= most) return "";
    return absl::StrCat("want ", FormatPlain(least), " to ", FormatPlain(most), " ", unit, ", got ",
                        text);
  };
  return CLI::Validator(check, "");
}

CLI::Validator Whole(double least, double most, absl::string_view unit) {
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value != std::floor(value)) {
      return absl::StrCat("want a whole number of ", unit, ", got ", text);
    }
    return InRange(least, most, unit)(text);
  };
  return CLI::Validator(check, "");
}

CLI::Option* Number(CLI::App& app, const std::string& name, double& value, CLI::Validator range,
                    const std::string& help) {
  return app.add_option(name, value, help)
      ->envname(EnvironmentOf(name))
      ->check(std::move(range))
      ->type_name("NUMBER")
      ->capture_default_str();
}

CLI::Option* Bytes(CLI::App& app, const std::string& name, double& value, CLI::Validator range,
                   const std::string& help) {
  return Number(app, name, value, std::move(range), help)
      ->transform(CLI::Validator(&ExpandBytes, ""))
      ->type_name("BYTES")
      ->default_str(BytesText(value));
}

void AddLimits(CLI::App& app, Limits& limits) {
  for (const LimitSpec& spec : LimitSpecs()) {
    const std::string name = absl::StrCat("--limit-", absl::StrReplaceAll(spec.name, {{"_", "-"}}));
    const bool bytes = absl::StartsWith(spec.unit, "bytes");
    const bool seconds = spec.unit == "seconds";
    const auto range = bytes || seconds ? &InRange : &Whole;
    const auto add = bytes ? &Bytes : &Number;
    const std::string least =
        spec.least > 0 ? absl::StrCat(" At least ", LeastText(spec.least, spec.unit), ".") : "";
    CLI::Option* option =
        add(app, name, limits.*spec.member, range(spec.least, spec.most, spec.unit),
            absl::StrCat(spec.help, least));
    if (seconds) option->type_name("SECONDS");
    option->group("Limits (BYTES: a number, or one with K, M or G, which count in steps of 1024)");
  }
}

void AddFlags(CLI::App& app, ServerOptions& o) {
  Flag(app, "--listen", o.listen, "HOST:PORT for clients; port 0 takes a free one");
  Flag(app, "--metrics-listen", o.metrics_listen, "HOST:PORT of /metrics, or none");
  Flag(app, "--worker", o.worker, "the worker program; default: gridclock-worker beside this one");
  Flag(
      app, "--devices", o.devices,
      "names or UUIDs separated by commas, as cpu,cuda:0; cuda: every GPU; auto: every GPU, or the "
      "CPU where there is none");
  Switch(
      app, "--allow-submit", o.allow_submit,
      "compile code of clients that have the role submit; without --token-file, of local clients");
  Switch(app, "--allow-cubin", o.allow_cubin, "with --allow-submit: take cubins too");
#ifdef GRIDCLOCK_TEST_BUILD
  app.add_option("--without-defence", o.without_defences)->delimiter(',');
  app.add_option("--reload-pipe", o.reload_pipe);
  app.add_option("--copiers", o.copiers);
#endif
  Switch(app, "--weak-sandbox", o.weak_sandbox,
         "with --allow-submit: run submitted code where the system has no Landlock, or an old one, "
         "too");
  Flag(app, "--module-cache", o.module_cache, "folder that keeps compiled modules; default: none");
  Flag(app, "--compiler", o.compiler,
       "the compiler program; default: gridclock-compiler beside this one");
  Flag(
      app, "--cuda-home", o.cuda_home,
      "folder of the CUDA toolkit that compiles; default: CUDA_HOME, CUDA_PATH or /usr/local/cuda");
  Flag(app, "--ready-file", o.ready_file, "written when calls can be served");
  Switch(
      app, "--exit-on-error", o.exit_on_error,
      "be ready once each device was, and end with code 1 where one's first workers cannot start; "
      "without it: be ready with the first, and try on");
  Flag(app, "--token-file", o.token_file, "who may call: lines NAME ROLES HASH");
  Flag(app, "--tls-cert", o.tls_cert, "certificate chain, PEM");
  Flag(app, "--tls-key", o.tls_key, "its private key, PEM");
  Flag(app, "--tls-client-ca", o.tls_client_ca, "clients must show a certificate signed by this");
  Switch(app, "--insecure-public", o.insecure_public,
         "listen where others can connect without TLS: anyone on the network can read and run");
  Switch(app, "--allow-admin", o.allow_admin,
         "without --token-file: let local clients cancel jobs, drain devices, restart workers");
  app.add_option("--reflection", o.reflection,
                 "show the services to tools of who may read (auto: on loopback)")
      ->envname("GRIDCLOCK_REFLECTION")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  constexpr double kDay = 86400;
  Number(app, "--drain-delay", o.drain_delay, InRange(-1, kDay, "seconds"),
         "seconds between NOT_SERVING and refusing calls; below 0: 0 on loopback, 5 elsewhere")
      ->type_name("SECONDS");
  Number(app, "--drain-grace", o.drain_grace, InRange(0, kDay, "seconds"),
         "seconds that calls get to end after SIGTERM")
      ->type_name("SECONDS");
  Bytes(app, "--arena-warm-bytes", o.arena_warm_bytes, InRange(0, 1e15, "bytes"),
        "memory for tensors made ready at start");
  AddLimits(app, o.limits);
}

// A flag that is misspelt in the environment would not be the one that its operator counts on.
// Other names that begin so are no flags: Kubernetes gives GRIDCLOCK_PORT to what runs beside a
// service.
absl::Status CheckEnvironment(const CLI::App& app) {
  std::vector<std::string> known = {"LOG_FORMAT"};
  for (const CLI::Option* option : app.get_options()) {
    const std::string whole = option->get_envname();
    absl::string_view name = whole;
    if (absl::ConsumePrefix(&name, kEnvironment)) known.emplace_back(name);
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    absl::string_view name(*entry, std::strcspn(*entry, "="));
    if (!absl::ConsumePrefix(&name, kEnvironment) || absl::c_linear_search(known, name)) continue;
    if (IsOfAService(name)) continue;
    const bool limit = absl::StartsWith(name, "LIMIT_");
    const std::string near = NearestNames(name, {known.begin(), known.end()});
    if (!limit && near.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the environment has ", Quote(absl::StrCat(kEnvironment, name)), ", which is no ",
        limit ? "limit" : "flag", ": ",
        near.empty() ? "--help lists them"
                     : absl::StrCat("behind ", kEnvironment, " the nearest are ", near)));
  }
  return absl::OkStatus();
}

// Without these files the server is open to more callers: one that is given without a name, as of a
// variable that a script forgot, is no wish for none.
absl::Status CheckSecurityFiles(const CLI::App& app) {
  for (const char* flag : {"--token-file", "--tls-cert", "--tls-key", "--tls-client-ca"}) {
    const CLI::Option* option = app.get_option(flag);
    const std::string name = option->get_envname();
    const bool by_flag = option->count() > 0;
    if (!by_flag && std::getenv(name.c_str()) == nullptr) continue;
    if (by_flag && !option->results().front().empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(by_flag ? flag : name, ": want a file, got ''; leave it out for none"));
  }
  return absl::OkStatus();
}

[[noreturn]] void PrintTokenHash() {
  constexpr std::size_t kShortToken = 16;
  std::string token;
  std::getline(std::cin, token);
  if (token.empty()) {
    std::cerr << "--hash-token: want the token on standard input\n";
    std::exit(2);
  }
  if (token.size() > kMaxToken) {
    std::cerr << "--hash-token: want a token of at most " << kMaxToken << " bytes, got "
              << token.size() << "\n";
    std::exit(2);
  }
  if (token.size() < kShortToken) {
    std::cerr << "--hash-token: a token of " << token.size()
              << " characters can be guessed: want 32 random bytes, as of openssl rand -hex 32\n";
  }
  std::cout << HashToken(token, NewSalt()) << "\n";
  std::exit(0);
}

// How many bytes `file` had for `room`, or errno.
std::optional<std::size_t> ReadAll(int file, std::span<char> room) {
  std::size_t size = 0;
  while (size < room.size()) {
    const ssize_t got = read(file, room.data() + size, room.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return size;
}

// What the file that `flag` names holds. A wrong one, a log that grows, shall not take the memory.
absl::StatusOr<std::string> ReadFile(absl::string_view flag, const std::string& path) {
  constexpr std::size_t kMaxFile = std::size_t{4} << 20;
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", what));
  };
  const auto unreadable = [&] {
    return wrong(absl::StrCat("cannot read '", path, "': ", std::strerror(errno)));
  };
  // To open a pipe that nobody writes would otherwise wait for ever.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  struct stat facts {};
  if (!file || fstat(file.get(), &facts) != 0) return unreadable();
  // What is open, not what the path named a moment ago.
  if (!S_ISREG(facts.st_mode)) return wrong(absl::StrCat("want a regular file, got '", path, "'"));
  std::string text(kMaxFile + 1, '\0');
  const std::optional<std::size_t> size = ReadAll(file.get(), text);
  if (!size) return unreadable();
  text.resize(*size);
  text.shrink_to_fit();
  if (text.empty()) return wrong(absl::StrCat("'", path, "' is empty"));
  if (text.size() > kMaxFile)
    return wrong(absl::StrCat("want at most 4 MiB, '", path, "' is larger"));
  // OpenSSL would read on behind it, and gRPC would not.
  if (const std::size_t at = text.find('\0'); at != std::string::npos) {
    return wrong(absl::StrCat("want text, '", path, "' has a byte 0 behind ", at, " others"));
  }
  return text;
}

absl::Status NoPem(absl::string_view flag, const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": '", path, "' holds no ", what));
}

absl::StatusOr<std::string> ReadCertificates(absl::string_view flag, const std::string& path,
                                             CertificateUse use) {
  GC_ASSIGN_OR_RETURN(std::string pem, ReadFile(flag, path));
  if (!IsCertificate(pem)) return NoPem(flag, path, "certificate as PEM");
  if (const absl::Status usable = CheckUsable(pem, use); !usable.ok()) {
    return Annotate(usable, absl::StrCat(flag, ": '", path, "'"));
  }
  return pem;
}

absl::StatusOr<std::string> ReadKey(const std::string& path) {
  GC_ASSIGN_OR_RETURN(std::string pem, ReadFile("--tls-key", path));
  if (!IsPrivateKey(pem)) return NoPem("--tls-key", path, "private key as PEM without a password");
  return pem;
}

absl::Status CheckMetricsAddress(const ServerOptions& options, const ListenAddress& listen) {
  if (options.metrics_listen.empty()) return absl::OkStatus();
  const absl::StatusOr<ListenAddress> metrics = Resolve(options.metrics_listen);
  if (!metrics.ok()) return Annotate(metrics.status(), "--metrics-listen");
  const auto is_v4 = [](const sockaddr_storage& one) { return one.ss_family == AF_INET; };
  if (absl::c_none_of(metrics->addresses, is_v4)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics-listen: want an address of IPv4 such as 127.0.0.1:8471, got '",
                     options.metrics_listen, "', which is one of IPv6"));
  }
  if (options.metrics_listen == listen.text && !absl::EndsWith(listen.text, ":0")) {
    return absl::InvalidArgumentError(absl::StrCat("--listen and --metrics-listen both name ",
                                                   listen.text, ": want an address for each"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Authenticator> MakeAuthenticator(const ServerOptions& options, bool loopback) {
  if (!options.token_file.empty()) {
    if (options.allow_admin) {
      Log(LogLevel::kWarning, "allow_admin_has_no_effect",
          {{"reason", "--token-file says who has the role admin"}});
    }
    GC_ASSIGN_OR_RETURN(TokenFile tokens, ReadTokens(options));
    return Authenticator(std::move(tokens));
  }
  if ((options.allow_submit || options.allow_admin) &&
      (!loopback || !options.tls_client_ca.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.allow_submit ? "--allow-submit" : "--allow-admin",
        " without --token-file is for local callers: want a --token-file that says who "
        "has the role, or an address on loopback and no --tls-client-ca"));
  }
  if (!options.tls_client_ca.empty()) return Authenticator(Authenticator::Peers::kCertificate);
  Roles local = 0;
  if (options.allow_submit) local |= static_cast<Roles>(Role::kSubmit);
  if (options.allow_admin) local |= static_cast<Roles>(Role::kAdmin);
  return Authenticator(loopback ? Authenticator::Peers::kLocal : Authenticator::Peers::kAnyone,
                       local);
}

}  // namespace

ServerOptions ParseOptions(int argc, char** argv) {
  ServerOptions options;
  CLI::App app{"Runs and times kernels that clients name, on tensors that they send."};
  app.set_version_flag("--version", std::string("gridclock-server " GRIDCLOCK_VERSION));
  bool hash_token = false;
  app.add_flag("--hash-token", hash_token,
               "read a token from standard input, print what stands for it in --token-file, end");
  AddFlags(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));
    std::cerr << "gridclock-server: " << error.what() << "; see gridclock-server --help\n";
    std::exit(2);
  }
  if (hash_token) PrintTokenHash();
  for (const absl::Status& status :
       {CheckEnvironment(app), CheckSecurityFiles(app), CheckLogFormat()}) {
    if (status.ok()) continue;
    std::cerr << "gridclock-server: " << status.message() << "\n";
    std::exit(2);
  }
  if (options.metrics_listen == "none") options.metrics_listen.clear();
  return options;
}

absl::StatusOr<Tls> ReadTls(const ServerOptions& options) {
  Tls tls;
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key go together");
  }
  if (options.tls_cert.empty()) {
    if (options.tls_client_ca.empty()) return tls;
    return absl::InvalidArgumentError("--tls-client-ca needs --tls-cert and --tls-key");
  }
  GC_ASSIGN_OR_RETURN(tls.certificate,
                      ReadCertificates("--tls-cert", options.tls_cert, CertificateUse::kServe));
  GC_ASSIGN_OR_RETURN(tls.key, ReadKey(options.tls_key));
  if (!KeyBelongsTo(tls.key, tls.certificate)) {
    return absl::InvalidArgumentError("--tls-key does not belong to --tls-cert");
  }
  if (!options.tls_client_ca.empty()) {
    GC_ASSIGN_OR_RETURN(
        tls.client_authority,
        ReadCertificates("--tls-client-ca", options.tls_client_ca, CertificateUse::kAskClients));
  }
  return tls;
}

absl::StatusOr<TokenFile> ReadTokens(const ServerOptions& options) {
  GC_ASSIGN_OR_RETURN(const std::string text, ReadFile("--token-file", options.token_file));
  auto tokens = TokenFile::Parse(text);
  if (tokens.ok()) return tokens;
  return Annotate(tokens.status(), absl::StrCat("--token-file: '", options.token_file, "'"));
}

absl::StatusOr<Security> CheckSecurity(const ServerOptions& options) {
  absl::StatusOr<ListenAddress> listen = Resolve(options.listen);
  if (!listen.ok()) return Annotate(listen.status(), "--listen");
  GC_RETURN_IF_ERROR(CheckMetricsAddress(options, *listen));
  const bool loopback = IsLoopback(*listen);
  GC_ASSIGN_OR_RETURN(Tls tls, ReadTls(options));
  if (!loopback && tls.certificate.empty() && !options.insecure_public) {
    return absl::InvalidArgumentError(absl::StrCat(
        "others can connect to ", options.listen, " and read all that is sent: give --tls-cert ",
        "and --tls-key, or say --insecure-public if the network is trusted"));
  }
  if (!loopback && tls.certificate.empty() && !options.token_file.empty()) {
    return absl::InvalidArgumentError(
        "--token-file on an address that others can reach needs --tls-cert and --tls-key: without "
        "TLS everyone on the way can read the tokens");
  }
  GC_ASSIGN_OR_RETURN(Authenticator authenticator, MakeAuthenticator(options, loopback));
  auto source = tls.certificate.empty() ? nullptr : std::make_shared<TlsSource>(std::move(tls));
  return Security{std::move(source), std::move(authenticator), *std::move(listen), loopback};
}

void LogDoubtfulFlags(const ServerOptions& options) {
  const Limits& limits = options.limits;
  if (options.allow_submit && limits.guest_bytes < limits.client_arena_bytes) {
    Log(LogLevel::kWarning, "guest_memory_small",
        {{"guest_bytes", FormatPlain(limits.guest_bytes)},
         {"client_arena_bytes", FormatPlain(limits.client_arena_bytes)},
         {"hint",
          "a call of submitted code has less room than one of the catalogue: "
          "--limit-guest-bytes gives it more"}});
  }
  if (options.allow_cubin && !options.allow_submit) {
    Log(LogLevel::kWarning, "allow_cubin_has_no_effect",
        {{"reason", "without --allow-submit no code is taken"}});
  }
  const double asked = options.arena_warm_bytes;
  if (asked <= limits.arena_bytes || asked == ServerOptions().arena_warm_bytes) return;
  Log(LogLevel::kWarning, "arena_warm_bytes_lowered",
      {{"asked", FormatPlain(asked)}, {"to", FormatPlain(limits.arena_bytes)}});
}

std::uint64_t MemoryBytes() {
  const std::uint64_t bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                              static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  return std::min(bytes, CgroupMemoryLimit().value_or(bytes));
}

}  // namespace gridclock
