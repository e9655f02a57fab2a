#include "server/metrics/http_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <civetweb.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "server/metrics/turns.h"

namespace gridclock {
namespace {

// The C interface of civetweb: its C++ wrapper throws where a port cannot be bound.
struct ContextDeleter {
  void operator()(mg_context* context) const { mg_stop(context); }
};
using Context = std::unique_ptr<mg_context, ContextDeleter>;

using SteadyClock = std::chrono::steady_clock;

constexpr char kTextType[] = "text/plain; charset=utf-8";

struct Answer {
  int code = 200;
  absl::string_view words = "OK";
  MetricsServer::Page page;
};

Answer Text(int code, absl::string_view words, std::string body) {
  return {.code = code, .words = words, .page = {.type = kTextType, .body = std::move(body)}};
}

// A page may show itself with its own script and style, and nothing of anybody else.
constexpr char kHeaders[] =
    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\nConnection: close\r\n\r\n";

// In pieces, because civetweb lets each write take as long as the client takes a little of it now
// and then: pieces end under one limit for all of them.
void Write(mg_connection* connection, absl::string_view text, SteadyClock::time_point deadline) {
  constexpr std::size_t kPiece = 4096;
  while (!text.empty() && SteadyClock::now() < deadline) {
    const std::size_t size = std::min(kPiece, text.size());
    if (mg_write(connection, text.data(), size) != static_cast<int>(size)) return;
    text.remove_prefix(size);
  }
}

void Send(mg_connection* connection, const Answer& answer, bool with_body, absl::Duration limit) {
  const SteadyClock::time_point deadline = SteadyClock::now() + absl::ToChronoNanoseconds(limit);
  const std::string head = absl::StrCat("HTTP/1.1 ", answer.code, " ", answer.words,
                                        "\r\nContent-Type: ", answer.page.type,
                                        "\r\nContent-Length: ", answer.page.body.size(), "\r\n",
                                        answer.code == 405 ? "Allow: GET, HEAD\r\n" : "", kHeaders);
  Write(connection, head, deadline);
  if (with_body) Write(connection, answer.page.body, deadline);
}

struct AddressesDeleter {
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};
using Addresses = std::unique_ptr<addrinfo, AddressesDeleter>;

// Null if there are none. Also of the older spellings of an address: "127.1", "0x7f000001".
Addresses Resolve(const std::string& host, int flags, const std::string& port = "") {
  addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const char* service = port.empty() ? nullptr : port.c_str();
  return Addresses(getaddrinfo(host.c_str(), service, &hints, &found) == 0 ? found : nullptr);
}

bool IsAddress(const std::string& host) {
  return Resolve(host, AI_NUMERICHOST) != nullptr;
}

bool IsLoopback(const sockaddr& address) {
  constexpr std::uint8_t kLoopbackNet = 127;
  if (address.sa_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return reinterpret_cast<const std::uint8_t*>(&four)[0] == kLoopbackNet;
  }
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&six) != 0 ||
         (IN6_IS_ADDR_V4MAPPED(&six) != 0 && six.s6_addr[12] == kLoopbackNet);
}

// Of a name that leads to several addresses it is not said here which one is listened on.
bool LeadsToLoopback(const std::string& host) {
  const Addresses found = Resolve(host, 0);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    if (IsLoopback(*one->ai_addr)) return true;
  }
  return false;
}

// "node1:8471", "[::1]:8471", "localhost.": the brackets and the last dot are of the notation.
// Empty where brackets hold no address, or something but a port follows.
std::string HostIn(absl::string_view address) {
  if (absl::ConsumePrefix(&address, "[")) {
    const std::size_t end = address.find(']');
    if (end == address.npos || !absl::StrContains(address.substr(0, end), ':')) return "";
    const absl::string_view port = address.substr(end + 1);
    if (!port.empty() && port[0] != ':') return "";
    address = address.substr(0, end);
  } else if (address.find(':') == address.rfind(':')) {
    address = address.substr(0, address.find(':'));
  }
  absl::ConsumeSuffix(&address, ".");
  return absl::AsciiStrToLower(address);
}

// "/runs/12", "/runs/5e1f09c3-12.json".
bool NamesARun(absl::string_view path) {
  if (!absl::ConsumePrefix(&path, "/runs/")) return false;
  absl::ConsumeSuffix(&path, ".json");
  return !path.empty() && path.find_first_not_of("0123456789abcdef-") == path.npos;
}

class Server final : public MetricsServer {
 public:
  Server(const Options& options, Pages pages)
      : pages_(std::move(pages)),
        answer_limit_(options.answer_timeout),
        host_(HostIn(options.address)),
        on_loopback_(LeadsToLoopback(host_)) {}
  ~Server() override;
  absl::Status Listen(const Options& options);
  int port() const override { return port_; }

 private:
  static int Handle(mg_connection* connection);
  static int AnswerBadRequest(mg_connection* connection, int code, const char* message);
  static void AnswerUnanswered(const mg_connection* connection);
  static int TakeLog(const mg_connection* connection, const char* message);
  static Server* Of(const mg_connection* connection);
  static void SetAnswered(mg_connection* connection);
  Answer AnswerRequest(const mg_connection* connection) const;
  bool IsMeant(const char* host) const;
  Answer AnswerTo(absl::string_view path, absl::string_view accept) const;
  std::optional<Page> MakePage(absl::string_view path, absl::string_view accept) const;
  std::string complaint() ABSL_LOCKS_EXCLUDED(mutex_);

  const Pages pages_;
  // Together they have half a processor. Who scrapes does not wait for people who look.
  mutable Turns scrapes_{3}, looks_{3};
  const absl::Duration answer_limit_;
  const std::string host_;
  const bool on_loopback_;
  Mutex mutex_;
  std::string complaint_ ABSL_GUARDED_BY(mutex_);
  int port_ = 0;
  Context context_;  // Last: its threads use all of the above until it is gone.
};

std::optional<Server::Page> Server::MakePage(absl::string_view path,
                                             absl::string_view accept) const {
  const Turns::Turn turn(path == "/metrics" ? scrapes_ : looks_);
  return pages_.page(path, accept);
}

Answer Server::AnswerTo(absl::string_view path, absl::string_view accept) const {
  if (path == "/healthz") return Text(200, "OK", "ok\n");
  if (path == "/readyz") {
    const std::string why = pages_.not_ready();
    if (why.empty()) return Text(200, "OK", "ready\n");
    return Text(503, "Service Unavailable", absl::StrCat("not ready: ", why, "\n"));
  }
  if (std::optional<Page> page = MakePage(path, accept)) return {.page = *std::move(page)};
  if (NamesARun(path)) {
    return Text(404, "Not Found",
                "no run of that ID: it is forgotten, or of another process; /runs has the last\n");
  }
  return Text(404, "Not Found",
              "no such page; there are / /kernels /runs /runs.json /runs/ID /runs/ID.json "
              "/status.json /metrics /healthz /readyz\n");
}

// A page of somebody else's, whose name was made to lead here, could read what a server on loopback
// tells its own machine. Names that lead elsewhere are an operator's business elsewhere.
bool Server::IsMeant(const char* host) const {
  if (host == nullptr || !on_loopback_) return true;
  const std::string name = HostIn(host);
  return name == "localhost" || name == host_ || IsAddress(name);
}

Answer Server::AnswerRequest(const mg_connection* connection) const {
  const mg_request_info* request = mg_get_request_info(connection);
  // civetweb keeps so many headers, and drops what comes behind them: a Host too.
  if (request->num_headers == MG_MAX_HEADERS) {
    return Text(431, "Request Header Fields Too Large",
                absl::StrCat("want less than ", MG_MAX_HEADERS, " headers\n"));
  }
  const absl::string_view method = request->request_method;
  if (method != "GET" && method != "HEAD") {
    return Text(405, "Method Not Allowed", "want GET or HEAD\n");
  }
  if (!IsMeant(mg_get_header(connection, "Host"))) {
    return Text(421, "Misdirected Request",
                absl::StrCat("on loopback: want an address, localhost or ", host_, " as Host\n"));
  }
  const char* accept = mg_get_header(connection, "Accept");
  return AnswerTo(request->local_uri, accept == nullptr ? "" : accept);
}

// As `begin_request`, so before civetweb answers a CORS preflight itself.
int Server::Handle(mg_connection* connection) {
  const Server& self = *Of(connection);
  SetAnswered(connection);
  // Else civetweb reads the body of the request to its end, however slowly it comes.
  mg_disable_connection_keep_alive(connection);
  const Answer answer = self.AnswerRequest(connection);
  const absl::string_view method = mg_get_request_info(connection)->request_method;
  Send(connection, answer, method != "HEAD", self.answer_limit_);
  return answer.code;
}

// What never becomes a request: a header too long or too slow, or no HTTP at all. civetweb's own
// answer would make its date in gmtime's one buffer, which all its threads share.
int Server::AnswerBadRequest(mg_connection* connection, int code, const char* message) {
  SetAnswered(connection);
  Send(connection,
       Text(code, mg_get_response_code_text(connection, code), absl::StrCat(message, "\n")), true,
       Of(connection)->answer_limit_);
  return 0;
}

// civetweb leaves a request for '*' or for another server without any answer, and closes.
void Server::AnswerUnanswered(const mg_connection* connection) {
  const mg_request_info* request = mg_get_request_info(connection);
  const bool is_request = request != nullptr && request->request_uri != nullptr;
  if (!is_request || mg_get_user_connection_data(connection) != nullptr) return;
  // Writing is what this callback of civetweb is for, though its connection is const.
  Send(const_cast<mg_connection*>(connection),
       Text(400, "Bad Request", "want a path that begins with '/'\n"), true,
       Of(connection)->answer_limit_);
}

void Server::SetAnswered(mg_connection* connection) {
  mg_set_user_connection_data(connection, connection);
}

// civetweb says here, and nowhere else, why it could not bind. Lines of single connections are of
// no use to anyone.
int Server::TakeLog(const mg_connection* connection, const char* message) {
  Server* self = Of(connection);
  if (self == nullptr) return 1;
  MutexLock lock(self->mutex_);
  if (self->complaint_.empty()) self->complaint_ = message;
  return 1;
}

// Null before there is a context.
Server* Server::Of(const mg_connection* connection) {
  const mg_context* context = mg_get_context(connection);
  return context == nullptr ? nullptr : static_cast<Server*>(mg_get_user_data(context));
}

std::string Server::complaint() {
  MutexLock lock(mutex_);
  return complaint_;
}

// "cannot bind to 127.0.0.1:8471: 98 (Address already in use)": what stands in parentheses.
std::string ReasonIn(const std::string& complaint) {
  const std::size_t open = complaint.rfind('(');
  if (open == std::string::npos || complaint.back() != ')') return complaint;
  return complaint.substr(open + 1, complaint.size() - open - 2);
}

absl::Status Server::Listen(const Options& options) {
  const std::string threads = absl::StrCat(options.threads);
  const std::string timeout = absl::StrCat(absl::ToInt64Milliseconds(options.timeout));
  const char* settings[] = {"listening_ports",
                            options.address.c_str(),
                            "num_threads",
                            threads.c_str(),
                            "request_timeout_ms",
                            timeout.c_str(),
                            "enable_keep_alive",
                            "no",
                            "decode_url",  // No path needs it, and %00 would cut one short.
                            "no",
                            nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = &Handle;
  callbacks.http_error = &AnswerBadRequest;
  callbacks.log_message = &TakeLog;
  callbacks.connection_close = &AnswerUnanswered;
  mg_init_data init{.callbacks = &callbacks, .user_data = this, .configuration_options = settings};
  char text[256] = "";
  unsigned code = 0;
  mg_error_data error{.code = &code, .text = text, .text_buffer_size = sizeof(text)};
  context_.reset(mg_start2(&init, &error));
  if (!context_) {
    const std::string why = complaint();
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options.address, ": ",
                                               ReasonIn(why.empty() ? text : why)));
  }
  mg_server_port ports[1] = {};
  if (mg_get_server_ports(context_.get(), 1, ports) == 1) port_ = ports[0].port;
  return absl::OkStatus();
}

// A connection that is begun and given up.
void Knock(const std::string& host, int port) {
  const Addresses found = Resolve(host, AI_NUMERICSERV, std::to_string(port));
  if (found == nullptr) return;
  const int kind = found->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC;
  const UniqueFd fd(socket(found->ai_family, kind, 0));
  if (fd) static_cast<void>(connect(fd.get(), found->ai_addr, found->ai_addrlen));
}

// civetweb's listening thread looks whether it shall end only when somebody comes, or every two
// seconds: a stop of the whole server would wait for that.
Server::~Server() {
  std::atomic<bool> ended = false;
  std::thread caller([&] {
    while (!ended) {
      Knock(host_, port_);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  context_.reset();
  ended = true;
  caller.join();
}

// civetweb also takes lists, bare ports (which listen everywhere) and the letters s and r after a
// port; none of them is meant here.
absl::Status CheckAddress(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool digits = !port.empty() && port.find_first_not_of("0123456789") == std::string::npos;
  const bool in_range = digits && port.size() <= 5 && std::stoi(port) <= 65535;
  if (!HostIn(address).empty() && in_range && !absl::StrContains(address, ','))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("want an address as '127.0.0.1:8471', got '", address, "'"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Create(const Options& options,
                                                                     Pages pages) {
  GC_RETURN_IF_ERROR(CheckAddress(options.address));
  auto server = std::make_unique<Server>(options, std::move(pages));
  GC_RETURN_IF_ERROR(server->Listen(options));
  return server;
}

}  // namespace gridclock
