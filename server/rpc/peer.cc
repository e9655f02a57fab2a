#include "server/rpc/peer.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace gridclock {
namespace {

std::string Text(const in_addr& address) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return text;
}

in_addr MappedIn(const in6_addr& v6) {
  in_addr v4{};
  std::copy(std::begin(v6.s6_addr) + 12, std::end(v6.s6_addr),
            reinterpret_cast<std::uint8_t*>(&v4));
  return v4;
}

// An IPv4 address that is written as one of IPv6 as what it is.
std::string Text(const in6_addr& address) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) return Text(MappedIn(address));
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &address, text, sizeof(text));
  return text;
}

constexpr std::size_t kNetworkBytes = 8;

std::string NetworkOf(in6_addr address) {
  std::fill(std::begin(address.s6_addr) + kNetworkBytes, std::end(address.s6_addr), 0);
  return absl::StrCat(Text(address), "/64");
}

// Of "[2001:db8::1]", or with the name of an interface "[fe80::1%eth0]", brackets and sign escaped
// or not.
std::optional<in6_addr> ParseV6(absl::string_view host) {
  std::string text =
      absl::StrReplaceAll(host, {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}, {"%25", "%"}});
  text.resize(std::min(text.find('%'), text.size()));
  in6_addr address{};
  if (inet_pton(AF_INET6, text.c_str(), &address) != 1) return std::nullopt;
  return address;
}

}  // namespace

std::string SiteOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return Text(reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  }
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_V4MAPPED(&v6) ? Text(v6) : NetworkOf(v6);
}

std::string SiteOf(absl::string_view peer) {
  absl::string_view host = peer.substr(0, peer.rfind(':'));
  const std::string unchanged(host);
  if (!absl::ConsumePrefix(&host, "ipv6:")) return unchanged;
  const std::optional<in6_addr> v6 = ParseV6(host);
  if (!v6) return unchanged;
  sockaddr_storage address{};
  auto& in6 = reinterpret_cast<sockaddr_in6&>(address);
  in6.sin6_family = AF_INET6;
  in6.sin6_addr = *v6;
  return absl::StrCat(IN6_IS_ADDR_V4MAPPED(&*v6) ? "ipv4:" : "ipv6:", SiteOf(address));
}

std::string EndpointOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return absl::StrCat(Text(v4.sin_addr), " ", ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return absl::StrCat(Text(v6.sin6_addr), " ", ntohs(v6.sin6_port));
}

std::string EndpointOf(absl::string_view peer) {
  const std::size_t colon = peer.rfind(':');
  if (colon == absl::string_view::npos) return std::string(peer);
  absl::string_view host = peer.substr(0, colon);
  absl::ConsumePrefix(&host, "ipv4:");
  std::string text(host);
  if (absl::ConsumePrefix(&host, "ipv6:")) {
    const std::optional<in6_addr> v6 = ParseV6(host);
    if (v6) text = Text(*v6);
  }
  return absl::StrCat(text, " ", peer.substr(colon + 1));
}

}  // namespace gridclock
