#include "server/rpc/acceptor.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"
#include "server/rpc/connection_calls.h"
#include "server/rpc/peer.h"
#include "server/rpc/watched_reads.h"

namespace gridclock {
namespace {

constexpr int kBacklog = 512;
constexpr int kTurnMillis = 1000;
constexpr int kNoneLeftMillis = 100;

struct HostPort {
  std::string host;
  std::string port;
};

absl::StatusOr<HostPort> Split(const std::string& address) {
  const auto colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("want HOST:PORT such as 127.0.0.1:8470 or [::1]:8470, got '", address, "'"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return HostPort{host, address.substr(colon + 1)};
}

// All that the host stands for; at least one.
absl::StatusOr<std::vector<sockaddr_storage>> LookUp(const HostPort& where) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(where.host.c_str(), where.port.c_str(), &hints, &found)) {
    return absl::InvalidArgumentError(absl::StrCat("'", where.host, "': ", gai_strerror(error)));
  }
  const absl::Cleanup free = [found] { freeaddrinfo(found); };
  std::vector<sockaddr_storage> all;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::copy_n(reinterpret_cast<const char*>(one->ai_addr), one->ai_addrlen,
                reinterpret_cast<char*>(&all.emplace_back()));
  }
  return all;
}

bool IsLoopbackAddress(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

int PortOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

absl::StatusOr<UniqueFd> Listen(const sockaddr_storage& where) {
  UniqueFd fd(socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoToStatus(errno, "socket");
  const int one = 1;
  // Not SO_REUSEPORT: a second server on the port shall fail, not take half of the calls.
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  const socklen_t size = where.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&where), size) != 0) {
    return absl::UnavailableError(std::strerror(errno));
  }
  if (listen(fd.get(), kBacklog) != 0) return ErrnoToStatus(errno, "listen");
  return fd;
}

UniqueFd OpenSpare() {
  return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

unsigned long InodeOf(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

ConnectionTable::Verdict ConnectionTable::Take(int fd, const std::string& peer) {
  const auto peer_open = [&] {
    const auto found = per_peer_.find(peer);
    return found == per_peer_.end() ? 0 : found->second;
  };
  if (open_.size() >= most_ || peer_open() >= most_per_peer_ || open_.contains(fd)) Sweep();
  if (open_.size() >= most_) return Verdict::kFull;
  if (peer_open() >= most_per_peer_) return Verdict::kPeerFull;
  open_[fd] = {InodeOf(fd), peer};
  ++per_peer_[peer];
  return Verdict::kTaken;
}

void ConnectionTable::Sweep() {
  for (auto it = open_.begin(); it != open_.end();) {
    if (InodeOf(it->first) == it->second.inode) {
      ++it;
      continue;
    }
    const auto peer = per_peer_.find(it->second.peer);
    if (--peer->second == 0) per_peer_.erase(peer);
    ForgetReads(it->first);
    it = open_.erase(it);
  }
}

std::size_t ConnectionTable::busiest_peer() const {
  std::size_t most = 0;
  for (const auto& [peer, count] : per_peer_) most = std::max(most, count);
  return most;
}

bool IsLoopback(const ListenAddress& address) {
  return !address.addresses.empty() &&
         std::all_of(address.addresses.begin(), address.addresses.end(), IsLoopbackAddress);
}

absl::StatusOr<ListenAddress> Resolve(const std::string& address) {
  GC_ASSIGN_OR_RETURN(const HostPort split, Split(address));
  GC_ASSIGN_OR_RETURN(std::vector<sockaddr_storage> all, LookUp(split));
  return ListenAddress{address, std::move(all)};
}

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Create(const Options& options,
                                                           const Clock& clock,
                                                           RpcObserver& observer) {
  const std::string& text = options.listen.text;
  auto listener = Listen(options.listen.addresses.front());
  if (!listener.ok()) {
    return Annotate(listener.status(), absl::StrCat("cannot listen on ", text));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (getsockname(listener->get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return ErrnoToStatus(errno, "getsockname");
  }
  const int port = PortOf(bound);
  const std::string host = text.substr(0, text.rfind(':'));
  return std::unique_ptr<Acceptor>(new Acceptor(options, clock, observer, *std::move(listener),
                                                port, absl::StrCat(host, ":", port)));
}

Acceptor::Acceptor(const Options& options, const Clock& clock, RpcObserver& observer,
                   UniqueFd listener, int port, std::string address)
    : clock_(clock),
      observer_(observer),
      listener_(std::move(listener)),
      spare_(OpenSpare()),
      stop_(eventfd(0, EFD_CLOEXEC)),
      port_(port),
      address_(std::move(address)),
      most_(options.connections),
      most_per_peer_(options.peer_connections),
      table_(options.connections, options.peer_connections) {}

Acceptor::~Acceptor() {
  Stop();
}

void Acceptor::Start(std::function<void(UniqueFd)> take) {
  take_ = std::move(take);
  last_turn_ns_ = absl::ToUnixNanos(clock_.Now());
  thread_ = std::thread([this] { Loop(); });
}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
  listener_.reset();
}

bool Acceptor::alive() const {
  return clock_.Now() - absl::FromUnixNanos(last_turn_ns_) < absl::Seconds(5);
}

Acceptor::Usage Acceptor::usage() {
  const MutexLock lock(mutex_);
  table_.Sweep();
  return {table_.size(), table_.busiest_peer()};
}

void Acceptor::Loop() {
  for (;;) {
    pollfd wait[] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    const int ready = poll(wait, 2, kTurnMillis);
    last_turn_ns_ = absl::ToUnixNanos(clock_.Now());
    if (wait[1].revents != 0) return;
    CountCutOff();
    SayRefused();
    ForgetClosed();
    if (ready <= 0 || AcceptOne()) continue;
    // poll() would return at once, again and again.
    if (poll(&wait[1], 1, kNoneLeftMillis) > 0) return;
  }
}

void Acceptor::CountCutOff() {
  const CutOff cut_off = TakeCutOff();
  const auto count = [&](const CutOff::Connections& connections, ConnectionEvent event,
                         const char* reason) {
    if (connections.count == 0) return;
    for (std::size_t i = 0; i < connections.count; ++i) observer_.OnConnection(event);
    Log(LogLevel::kWarning, "connections_cut_off",
        {{"connections", absl::StrCat(connections.count)},
         {"last_peer", connections.last_peer},
         {"reason", reason}});
  };
  count(cut_off.headers, ConnectionEvent::kCutOffHeaders,
        "headers of a call that were far too long");
  count(cut_off.calls, ConnectionEvent::kCutOffCalls,
        "calls begun faster than they could be done with, or messages begun and not ended");
}

void Acceptor::ForgetClosed() {
  const absl::Time now = clock_.Now();
  if (now - last_sweep_ < absl::Milliseconds(kTurnMillis)) return;
  last_sweep_ = now;
  {
    const MutexLock lock(mutex_);
    table_.Sweep();
  }
  CallsOfConnections().ForgetOld(now);
}

void Acceptor::NoteRefused(const std::string& peer, std::size_t limit, absl::string_view name) {
  refused_ = {.connections = refused_.connections + 1,
              .limit = limit,
              .name = std::string(name),
              .peer = peer};
}

void Acceptor::SayRefused() {
  constexpr absl::Duration kPause = absl::Seconds(10);
  const absl::Time now = clock_.Now();
  if (refused_.connections == 0 || now < next_said_) return;
  next_said_ = now + kPause;
  Log(LogLevel::kWarning, "connections_refused",
      {{"connections", absl::StrCat(refused_.connections)},
       {"last_peer", refused_.peer},
       {"limit", refused_.name},
       {"open", absl::StrCat(refused_.limit)}});
  refused_ = {};
}

bool Acceptor::AcceptOne() {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  UniqueFd connection(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection) {
    if (!spare_) spare_ = OpenSpare();
    TakeIn(std::move(connection), SiteOf(address));
    return true;
  }
  if (errno == EMFILE || errno == ENFILE) return ShedOne();
  return errno != ENOMEM && errno != ENOBUFS;
}

void Acceptor::TakeIn(UniqueFd connection, const std::string& peer) {
  const int one = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  ConnectionTable::Verdict verdict;
  {
    const MutexLock lock(mutex_);
    verdict = table_.Take(connection.get(), peer);
  }
  switch (verdict) {
    case ConnectionTable::Verdict::kFull:
      NoteRefused(peer, most_, "connections");
      return observer_.OnConnection(ConnectionEvent::kRejectedTotal);
    case ConnectionTable::Verdict::kPeerFull:
      NoteRefused(peer, most_per_peer_, "peer_connections");
      return observer_.OnConnection(ConnectionEvent::kRejectedPeer);
    case ConnectionTable::Verdict::kTaken:
      break;
  }
  observer_.OnConnection(ConnectionEvent::kAccepted);
  take_(std::move(connection));
}

// Without a descriptor the waiting connection cannot even be refused: give up the spare one,
// accept, close, take the spare back. Another thread may have been quicker.
bool Acceptor::ShedOne() {
  spare_.reset();
  UniqueFd shed(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const bool gone = static_cast<bool>(shed);
  shed.reset();
  spare_ = OpenSpare();
  if (gone) observer_.OnConnection(ConnectionEvent::kRejectedDescriptors);
  return gone;
}

}  // namespace gridclock
