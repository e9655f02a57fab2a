#include "client/cpp/channels.h"

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

TEST(ChannelsTest, ATokenStaysOnThisHostOrGoesByTls) {
  EXPECT_THAT(CheckOptions({.server = "127.0.0.1:1", .token = "t"}), IsOk());
  EXPECT_THAT(CheckOptions({.server = "node7:8470", .token = "t"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("plain text")));
  EXPECT_THAT(CheckOptions({.server = "node7:8470", .token = "t", .tls = TlsOptions{}}), IsOk());
  EXPECT_THAT(CheckOptions(
                  {.server = "node7:8470", .token = "t", .tls = {}, .allow_plaintext_token = true}),
              IsOk());
}

TEST(ChannelsTest, ThisHostIsAnAddressAndNotANameThatBeginsLikeOne) {
  for (const char* server : {"127.0.0.1:1", "127.9.8.7:1", "localhost:1", "[::1]:1"}) {
    EXPECT_THAT(CheckOptions({.server = server, .token = "t"}), IsOk()) << server;
  }
  for (const char* server : {"127.example.org:8470", "127.0.0.1.example.org:1", "127.0.0.1,evil:1",
                             "localhost.example.org:1", "128.0.0.1:1", "[::2]:1"}) {
    EXPECT_THAT(CheckOptions({.server = server, .token = "t"}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("plain text")))
        << server;
  }
}

TEST(ChannelsTest, ACertificateAndItsKeyGoTogether) {
  const auto check = [](const TlsOptions& tls) {
    return CheckOptions({.server = "127.0.0.1:1", .token = {}, .tls = tls});
  };
  EXPECT_THAT(check({.key_pem = "k"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("go together")));
  EXPECT_THAT(check({.cert_pem = "c", .key_pem = "k"}), IsOk());
}

TEST(ChannelsTest, ATokenCannotSmuggleHeaders) {
  EXPECT_FALSE(CheckOptions({.server = "127.0.0.1:1", .token = "a\r\nb"}).ok());
}

TEST(ChannelsTest, AServerIsHostAndPort) {
  EXPECT_FALSE(CheckOptions({.server = ""}).ok());
  for (const char* server :
       {"node7", "node7:", "node7:0", "node7:65536", "node7:8470/foo", "127.0.0.1:8470x",
        "node7:grpc", "unix:/run/x", "http://node7:8470", ":8470", "[::1:8470", "::1:8470"}) {
    EXPECT_THAT(CheckOptions({.server = server}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")))
        << server;
  }
  EXPECT_THAT(CheckOptions({.server = "[::1]:8470"}), IsOk());
}

}  // namespace
}  // namespace gridclock
