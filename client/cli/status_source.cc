#include "client/cli/status_source.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace gridclock::cli {
namespace {

// A page of 200 runs takes a tenth of it; whoever sends more is not a server of ours.
constexpr std::size_t kMostBytes = 16 << 20;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

absl::Status Unreachable(const std::string& address, absl::string_view why) {
  return WithReason(
      absl::UnavailableError(absl::StrCat(
          "no status page at ", address, " (", why,
          "); name the server's metrics address with --metrics HOST:PORT or GRIDCLOCK_METRICS")),
      kStatusUnreachable);
}

void Bound(int fd, absl::Duration left) {
  const timeval time = absl::ToTimeval(std::max(left, absl::Milliseconds(1)));
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
}

absl::StatusOr<UniqueFd> ConnectTo(const std::string& address, absl::Time end) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), address.c_str() + colon + 1, &wanted, &found);
  if (code != 0) return Unreachable(address, gai_strerror(code));
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    UniqueFd fd(socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    Bound(fd.get(), end - absl::Now());
    if (connect(fd.get(), at->ai_addr, at->ai_addrlen) == 0) return fd;
  }
  return Unreachable(address, std::strerror(errno));
}

// Head and body. The server closes the connection behind them.
absl::StatusOr<std::string> Exchange(const std::string& address, const std::string& path,
                                     absl::Time end) {
  GC_ASSIGN_OR_RETURN(const UniqueFd fd, ConnectTo(address, end));
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", address,
                   "\r\nAccept: application/json\r\nConnection: close\r\n\r\n");
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return Unreachable(address, std::strerror(errno));
  }
  std::string answer;
  char buffer[16384];
  while (answer.size() <= kMostBytes) {
    Bound(fd.get(), end - absl::Now());
    const ssize_t got = recv(fd.get(), buffer, sizeof(buffer), 0);
    if (got == 0) return answer;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) return Unreachable(address, std::strerror(errno));
    if (got < 0) return Unreachable(address, "it does not answer in time");
    answer.append(buffer, static_cast<std::size_t>(got));
    if (absl::Now() >= end) return Unreachable(address, "it does not answer in time");
  }
  return Unreachable(address, "its answer is too long");
}

}  // namespace

absl::StatusOr<Json> FetchJson(const std::string& address, const std::string& path,
                               absl::Duration timeout) {
  GC_ASSIGN_OR_RETURN(const std::string answer, Exchange(address, path, absl::Now() + timeout));
  if (!absl::StartsWith(answer, "HTTP/1.")) {
    return Unreachable(address, "it answers, but not as a web server: is it the gRPC port?");
  }
  const std::size_t head = answer.find("\r\n\r\n");
  if (!absl::StartsWith(answer, "HTTP/1.1 200 ") || head == std::string::npos) {
    return Unreachable(address, "it answers, but not with that page");
  }
  Json json = Json::parse(answer.begin() + static_cast<std::ptrdiff_t>(head) + 4, answer.end(),
                          /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Unreachable(address, "it answers, but not with JSON");
  return json;
}

}  // namespace gridclock::cli
