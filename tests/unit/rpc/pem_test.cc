#include "server/rpc/pem.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

// Until 2030-01-02 03:04:05 UTC, a year of two digits.
constexpr char kOf2030[] = R"(-----BEGIN CERTIFICATE-----
MIH+MIGmAgEBMAoGCCqGSM49BAMCMAwxCjAIBgNVBAMMAXQwHhcNMjAwMTAxMDAw
MDAwWhcNMzAwMTAyMDMwNDA1WjAMMQowCAYDVQQDDAF0MFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAE28eUVpw9/eik9+WSGuwWjKicoANIC5bjQF1RbcNdu0eb4RFY
MPDbbxApC35mKAYiwN6ANOGO4rRFqb9ac/DcmTAKBggqhkjOPQQDAgNHADBEAiAR
veIi4KhDMBBUrjO45LGHxmsgBBPcUGqBhMxJvOCxeAIgDLGOXxVdRmq1unyScPWj
DSo7JwN45bZi5K18xYgvOTs=
-----END CERTIFICATE-----
)";
// Until 2060-01-02 03:04:05 UTC, a year of four digits.
constexpr char kOf2060[] = R"(-----BEGIN CERTIFICATE-----
MIIBAjCBqAIBATAKBggqhkjOPQQDAjAMMQowCAYDVQQDDAF0MCAXDTIwMDEwMTAw
MDAwMFoYDzIwNjAwMTAyMDMwNDA1WjAMMQowCAYDVQQDDAF0MFkwEwYHKoZIzj0C
AQYIKoZIzj0DAQcDQgAE28eUVpw9/eik9+WSGuwWjKicoANIC5bjQF1RbcNdu0eb
4RFYMPDbbxApC35mKAYiwN6ANOGO4rRFqb9ac/DcmTAKBggqhkjOPQQDAgNJADBG
AiEApBQbKluX7A0kjC2Hb9josKf7WCLhnEjvc/QUfbYDBTICIQDj6NuS4FejcuwO
4llvDbQoAnz55ighY9hY+2mGL42Szw==
-----END CERTIFICATE-----
)";

absl::Time Utc(int year) {
  return absl::FromCivil(absl::CivilSecond(year, 1, 2, 3, 4, 5), absl::UTCTimeZone());
}

TEST(Pem, TellsUntilWhenACertificateIsValid) {
  EXPECT_EQ(ExpiryOf(kOf2030), Utc(2030));
  EXPECT_EQ(ExpiryOf(kOf2060), Utc(2060));
}

TEST(Pem, TheFirstCertificateOfAChainIsTheServersOwn) {
  EXPECT_EQ(ExpiryOf(absl::StrCat(kOf2060, kOf2030)), Utc(2060));
}

TEST(Pem, WhatIsNoCertificateIsNotValid) {
  EXPECT_EQ(ExpiryOf(""), absl::InfinitePast());
  EXPECT_EQ(ExpiryOf("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            absl::InfinitePast());
}

}  // namespace
}  // namespace gridclock
