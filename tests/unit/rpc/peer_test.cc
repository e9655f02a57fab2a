#include "server/rpc/peer.h"

#include <gtest/gtest.h>

#include "tests/support/address.h"

namespace gridclock {
namespace {

TEST(SiteOf, AnAddressOfIpv4IsItself) {
  EXPECT_EQ(SiteOf(Address("10.0.0.7")), "10.0.0.7");
  EXPECT_EQ(SiteOf("ipv4:10.0.0.7:51342"), "ipv4:10.0.0.7");
}

TEST(SiteOf, AllAddressesOfANetworkOfIpv6AreOne) {
  EXPECT_EQ(SiteOf(Address("2001:db8:0:7::1")), "2001:db8:0:7::/64");
  EXPECT_EQ(SiteOf(Address("2001:db8:0:7:ffff:ffff:ffff:ffff")), "2001:db8:0:7::/64");
  EXPECT_EQ(SiteOf(Address("2001:db8:0:8::1")), "2001:db8:0:8::/64");
  EXPECT_EQ(SiteOf(Address("::1")), "::/64");
}

TEST(SiteOf, GrpcsNameForAPeerIsReadToo) {
  EXPECT_EQ(SiteOf("ipv6:%5B2001:db8:0:7::1%5D:51342"), "ipv6:2001:db8:0:7::/64");
  EXPECT_EQ(SiteOf("ipv6:[2001:db8:0:7::2]:80"), "ipv6:2001:db8:0:7::/64");
  EXPECT_EQ(SiteOf("ipv6:%5Bfe80::1%25eth0%5D:51342"), "ipv6:fe80::/64");
}

// A listener on [::] takes connections of both families; all of IPv4 would else be one peer.
TEST(SiteOf, Ipv4InIpv6IsIpv4) {
  EXPECT_EQ(SiteOf(Address("::ffff:10.0.0.7")), "10.0.0.7");
  EXPECT_EQ(SiteOf("ipv6:%5B::ffff:10.0.0.7%5D:51342"), "ipv4:10.0.0.7");
}

TEST(SiteOf, WhatIsNoAddressLosesItsPortAlone) {
  EXPECT_EQ(SiteOf("ipv6:%5Bnonsense%5D:1"), "ipv6:%5Bnonsense%5D");
  EXPECT_EQ(SiteOf("unix:/run/socket"), "unix");
  EXPECT_EQ(SiteOf("nothing"), "nothing");
  EXPECT_EQ(SiteOf(""), "");
}

TEST(EndpointOf, IsTheSameOfAnAddressAndOfGrpcsNameForIt) {
  EXPECT_EQ(EndpointOf(Address("10.0.0.7")), EndpointOf("ipv4:10.0.0.7:0"));
  EXPECT_EQ(EndpointOf(Address("::ffff:10.0.0.7")), EndpointOf("ipv4:10.0.0.7:0"));
  EXPECT_EQ(EndpointOf(Address("::ffff:10.0.0.7")), EndpointOf("ipv6:%5B::ffff:10.0.0.7%5D:0"));
  EXPECT_EQ(EndpointOf(Address("2001:db8:0:7::1")), EndpointOf("ipv6:%5B2001:db8:0:7::1%5D:0"));
  EXPECT_EQ(EndpointOf(Address("fe80::1")), EndpointOf("ipv6:%5Bfe80::1%25eth0%5D:0"));
}

TEST(EndpointOf, TellsAddressesAndPortsApart) {
  EXPECT_NE(EndpointOf("ipv4:10.0.0.7:1"), EndpointOf("ipv4:10.0.0.7:2"));
  EXPECT_NE(EndpointOf("ipv4:10.0.0.7:1"), EndpointOf("ipv4:10.0.0.8:1"));
  EXPECT_NE(EndpointOf(Address("2001:db8:0:7::1")), EndpointOf(Address("2001:db8:0:7::2")));
}

}  // namespace
}  // namespace gridclock
