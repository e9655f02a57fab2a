#include "client/cpp/channels.h"

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

TEST(ChannelsTest, ATokenStaysOnThisHostOrGoesByTls) {
  EXPECT_THAT(CheckOptions({.server = "127.0.0.1:1", .token = "t"}), IsOk());
  EXPECT_THAT(CheckOptions({.server = "unix:/run/x", .token = "t"}), IsOk());
  EXPECT_THAT(CheckOptions({.server = "node7:8470", .token = "t"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("plain text")));
  EXPECT_THAT(CheckOptions({.server = "node7:8470", .token = "t", .tls = TlsOptions{}}), IsOk());
  EXPECT_THAT(CheckOptions(
                  {.server = "node7:8470", .token = "t", .tls = {}, .allow_plaintext_token = true}),
              IsOk());
}

TEST(ChannelsTest, ATokenCannotSmuggleHeaders) {
  EXPECT_FALSE(CheckOptions({.server = "127.0.0.1:1", .token = "a\r\nb"}).ok());
}

TEST(ChannelsTest, AServerIsHostAndPort) {
  EXPECT_FALSE(CheckOptions({.server = ""}).ok());
  EXPECT_THAT(CheckOptions({.server = "node7"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")));
}

}  // namespace
}  // namespace gridclock
