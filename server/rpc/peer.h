// Who a connection comes from, as far as its address tells.
#ifndef GRIDCLOCK_SERVER_RPC_PEER_H_
#define GRIDCLOCK_SERVER_RPC_PEER_H_

#include <string>

#include <sys/socket.h>

#include "absl/strings/string_view.h"

namespace gridclock {

// "10.0.0.7", and "2001:db8:0:7::/64" of any address in that network: whoever has one of them
// mostly has them all. An IPv4 address that is written as one of IPv6 is one of IPv4.
std::string SiteOf(const sockaddr_storage& address);

// The same of what gRPC calls a peer, with its family: "ipv4:10.0.0.7" of "ipv4:10.0.0.7:51342",
// "ipv6:2001:db8:0:7::/64" of "ipv6:%5B2001:db8:0:7::1%5D:51342". What is none of these loses what
// stands behind its last colon.
std::string SiteOf(absl::string_view peer);

// Address and port, the same of both. Two connections share it where the server has several
// addresses, and to each of them comes one.
std::string EndpointOf(const sockaddr_storage& address);
std::string EndpointOf(absl::string_view peer);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_PEER_H_
