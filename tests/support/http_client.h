// Just enough HTTP to ask our own listener.
#ifndef GRIDCLOCK_TESTS_SUPPORT_HTTP_CLIENT_H_
#define GRIDCLOCK_TESTS_SUPPORT_HTTP_CLIENT_H_

#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.h"

namespace gridclock {

inline bool ConnectTo(const UniqueFd& fd, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

inline UniqueFd Connect(int port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ConnectTo(fd, port) ? std::move(fd) : UniqueFd();
}

inline bool SendText(const UniqueFd& fd, const std::string& text) {
  return send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

// All that comes until the other side ends.
inline std::string ReadAll(const UniqueFd& fd) {
  std::string answer;
  char buffer[4096];
  for (ssize_t n; (n = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) answer.append(buffer, n);
  return answer;
}

// Head and body; "" if there was no answer.
inline std::string Fetch(int port, const std::string& path, const std::string& method = "GET") {
  const UniqueFd fd = Connect(port);
  if (!SendText(fd, method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")) return "";
  return ReadAll(fd);
}

// "" if there was no answer, or not all of its head.
inline std::string BodyOf(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_SUPPORT_HTTP_CLIENT_H_
