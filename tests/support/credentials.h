// Tokens and certificates for a server under test.
#ifndef GRIDCLOCK_TESTS_SUPPORT_CREDENTIALS_H_
#define GRIDCLOCK_TESTS_SUPPORT_CREDENTIALS_H_

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/server_process.h"

namespace gridclock {

inline std::string Output(const std::string& command) {
  std::string out;
  std::array<char, 4096> buffer{};
  FILE* pipe = popen(command.c_str(), "r");
  while (pipe != nullptr && fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
    out += buffer.data();
  }
  if (pipe != nullptr) pclose(pipe);
  return out;
}

inline void Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}
inline std::string Read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// What stands for it in a token file, and the line's end.
inline std::string HashedToken(const std::string& token) {
  return Output(
      absl::StrCat("printf ", token, " | ", BinaryPath("gridclock-server"), " --hash-token"));
}

// A small authority, and a key pair that it signed.
struct Certificates {
  explicit Certificates(const std::string& f) : folder(f) {
    const std::string script = absl::StrCat(
        "cd ", folder, " && exec >log 2>&1; ",
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out "
        "ca.pem;",
        "printf 'subjectAltName=DNS:localhost' >ext;", "for n in server client; do ",
        "openssl req -newkey rsa:2048 -nodes -subj /CN=$n -keyout $n.key -out $n.csr;",
        "openssl x509 -req -in $n.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 ",
        "-extfile ext -out $n.pem; done");
    EXPECT_EQ(std::system(script.c_str()), 0) << Read(folder + "/log");
  }
  std::string Path(const std::string& name) const { return absl::StrCat(folder, "/", name); }
  std::shared_ptr<grpc::Channel> Connect(const std::string& address, bool with_key) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = Read(Path("ca.pem"));
    if (with_key) {
      options.pem_private_key = Read(Path("client.key"));
      options.pem_cert_chain = Read(Path("client.pem"));
    }
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("localhost");
    return grpc::CreateCustomChannel(address, grpc::SslCredentials(options), arguments);
  }
  const std::string folder;
};

// weak.key and weak.pem in `folder`: OpenSSL reads them, and makes no connection with them.
inline void MakeWeakPair(const std::string& folder) {
  const std::string said =
      Output(absl::StrCat("cd ", folder, " && openssl req -x509 -newkey rsa:512 -nodes -days 700 ",
                          "-subj /CN=weak -keyout weak.key -out weak.pem 2>&1"));
  EXPECT_NE(Read(folder + "/weak.pem"), "") << said;
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_SUPPORT_CREDENTIALS_H_
