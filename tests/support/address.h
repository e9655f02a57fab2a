#ifndef GRIDCLOCK_TESTS_SUPPORT_ADDRESS_H_
#define GRIDCLOCK_TESTS_SUPPORT_ADDRESS_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace gridclock {

// "10.0.0.7" or "2001:db8::1", port 0.
inline sockaddr_storage Address(const char* ip) {
  sockaddr_storage address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (inet_pton(AF_INET, ip, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, ip, &v6.sin6_addr), 1) << ip;
    v6.sin6_family = AF_INET6;
  }
  return address;
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_SUPPORT_ADDRESS_H_
