#include "server/rpc/peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace gridclock {
namespace {

sockaddr_storage V4(const char* text) {
  sockaddr_storage address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  v4.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, text, &v4.sin_addr), 1) << text;
  return address;
}

sockaddr_storage V6(const char* text) {
  sockaddr_storage address{};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  v6.sin6_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
  return address;
}

TEST(SiteOf, AnAddressOfIpv4IsItself) {
  EXPECT_EQ(SiteOf(V4("10.0.0.7")), "10.0.0.7");
  EXPECT_EQ(SiteOf("ipv4:10.0.0.7:51342"), "ipv4:10.0.0.7");
}

TEST(SiteOf, AllAddressesOfANetworkOfIpv6AreOne) {
  EXPECT_EQ(SiteOf(V6("2001:db8:0:7::1")), "2001:db8:0:7::/64");
  EXPECT_EQ(SiteOf(V6("2001:db8:0:7:ffff:ffff:ffff:ffff")), "2001:db8:0:7::/64");
  EXPECT_EQ(SiteOf(V6("2001:db8:0:8::1")), "2001:db8:0:8::/64");
  EXPECT_EQ(SiteOf(V6("::1")), "::/64");
}

TEST(SiteOf, GrpcsNameForAPeerIsReadToo) {
  EXPECT_EQ(SiteOf("ipv6:%5B2001:db8:0:7::1%5D:51342"), "ipv6:2001:db8:0:7::/64");
  EXPECT_EQ(SiteOf("ipv6:[2001:db8:0:7::2]:80"), "ipv6:2001:db8:0:7::/64");
  EXPECT_EQ(SiteOf("ipv6:%5Bfe80::1%25eth0%5D:51342"), "ipv6:fe80::/64");
}

// A listener on [::] takes connections of both families; all of IPv4 would else be one peer.
TEST(SiteOf, Ipv4InIpv6IsIpv4) {
  EXPECT_EQ(SiteOf(V6("::ffff:10.0.0.7")), "10.0.0.7");
  EXPECT_EQ(SiteOf("ipv6:%5B::ffff:10.0.0.7%5D:51342"), "ipv4:10.0.0.7");
}

TEST(SiteOf, WhatIsNoAddressLosesItsPortAlone) {
  EXPECT_EQ(SiteOf("ipv6:%5Bnonsense%5D:1"), "ipv6:%5Bnonsense%5D");
  EXPECT_EQ(SiteOf("unix:/run/socket"), "unix");
  EXPECT_EQ(SiteOf("nothing"), "nothing");
  EXPECT_EQ(SiteOf(""), "");
}

}  // namespace
}  // namespace gridclock
