#include "server/rpc/pem.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

// Of RSA with 512 bits: no security level of OpenSSL but 0 takes it.
constexpr char kWeak[] = R"(-----BEGIN CERTIFICATE-----
MIIBdzCCASGgAwIBAgIUU6nY4vJKZNm9eYlACC1cvBPBNQ4wDQYJKoZIhvcNAQEL
BQAwDzENMAsGA1UEAwwEd2VhazAgFw0yNjExMjQwMzExMTRaGA8yMDU0MDQxMTAz
MTExNFowDzENMAsGA1UEAwwEd2VhazBcMA0GCSqGSIb3DQEBAQUAA0sAMEgCQQCh
xYB641j5zFULZkvU1yzDAw5JjVLJ4/DSonGw9K2fvoQf4925TIVLv9LD+fCUeODi
tFit/ubmucXZ5f9qnkITAgMBAAGjUzBRMB0GA1UdDgQWBBTDIevtlhPA+zat4qPZ
de02sctdMTAfBgNVHSMEGDAWgBTDIevtlhPA+zat4qPZde02sctdMTAPBgNVHRMB
Af8EBTADAQH/MA0GCSqGSIb3DQEBCwUAA0EAb2UCiKvLXe3FOgN2+/9twNd4Vup2
/OZQcNil274WlKN/gdcjnXOVrknqVta9Jn0vcYQSRfdYO5imKX6y61s79A==
-----END CERTIFICATE-----
)";

absl::Time Utc(int year) {
  return absl::FromCivil(absl::CivilSecond(year, 1, 2, 3, 4, 5), absl::UTCTimeZone());
}

TEST(Pem, TellsUntilWhenACertificateIsValid) {
  EXPECT_EQ(ExpiryOf(kOf2030, Utc(2026)), Utc(2030));
  EXPECT_EQ(ExpiryOf(kOf2060, Utc(2026)), Utc(2060));
}

TEST(Pem, AChainIsValidUntilItsFirstCertificateExpires) {
  EXPECT_EQ(ExpiryOf(absl::StrCat(kOf2060, kOf2030), Utc(2026)), Utc(2030));
  EXPECT_EQ(ExpiryOf(absl::StrCat(kOf2030, kOf2060), Utc(2026)), Utc(2030));
  EXPECT_EQ(ExpiryOf(absl::StrCat(kOf2060, kOf2060, kOf2030), Utc(2026)), Utc(2030));
  EXPECT_EQ(ExpiryOf(absl::StrCat(kOf2060, kOf2030), Utc(2031)), Utc(2060)) << "a superfluous one";
  EXPECT_EQ(ExpiryOf(absl::StrCat(kOf2030, kOf2060), Utc(2031)), Utc(2030));
}

TEST(Pem, WhatIsNoCertificateIsNotValid) {
  EXPECT_EQ(ExpiryOf("", Utc(2026)), absl::InfinitePast());
  EXPECT_EQ(ExpiryOf("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", Utc(2026)),
            absl::InfinitePast());
}

TEST(Pem, WhatOpenSslWouldRefuseAtEachHandshakeIsNotUsable) {
  const auto refused = [](int number) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr(absl::StrCat("number ", number)), HasSubstr("key too small")));
  };
  EXPECT_THAT(CheckUsable(kWeak, CertificateUse::kServe), refused(1));
  EXPECT_THAT(CheckUsable(absl::StrCat(kOf2060, kWeak), CertificateUse::kServe), refused(2));
  EXPECT_THAT(CheckUsable(kWeak, CertificateUse::kAskClients), refused(1));
  for (const auto use : {CertificateUse::kServe, CertificateUse::kAskClients}) {
    EXPECT_THAT(CheckUsable(absl::StrCat(kOf2060, kOf2030), use), IsOk());
  }
}

// Wherever it ends: within the lines that begin and end it too.
TEST(Pem, ACertificateThatIsCutShortIsNotTheEndOfTheOthers) {
  const std::string first = kOf2060, second = kOf2030;
  for (const auto use : {CertificateUse::kServe, CertificateUse::kAskClients}) {
    for (std::size_t size = 1; size < second.size() - 1; ++size) {
      EXPECT_THAT(CheckUsable(first + second.substr(0, size), use),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("certificate number 2 cannot be read")))
          << size << " bytes";
    }
    EXPECT_THAT(CheckUsable(first + second.substr(0, second.size() - 1), use), IsOk());
  }
}

TEST(Pem, WhatStandsAroundCertificatesIsNotRead) {
  const std::string text = absl::StrCat("the leaf\n", kOf2060, "\n# its authority\n", kOf2030,
                                        "\nuntil 2030, with 5 - 3 = 2 of them");
  EXPECT_THAT(CheckUsable(text, CertificateUse::kServe), IsOk());
}

}  // namespace
}  // namespace gridclock
