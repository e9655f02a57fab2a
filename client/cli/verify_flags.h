// What the outputs of a call are compared with, on a command line.
#ifndef GRIDCLOCK_CLIENT_CLI_VERIFY_FLAGS_H_
#define GRIDCLOCK_CLIENT_CLI_VERIFY_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/inputs.h"
#include "client/cli/subject.h"

namespace CLI {
class App;
}

namespace gridclock::cli {

struct VerifyFlags {
  // "": not at all; kOwn: with the kernel's own reference; else, for a kernel of a file, "softmax",
  // "other.cu:ENTRY", "expected.npy" or "y=expected.npy".
  static constexpr char kOwn[] = "reference";
  std::string verify;
  std::vector<std::string> with;  // NAME=VALUE: attributes of that kernel.
};
void AddVerifyFlags(CLI::App& app, VerifyFlags* flags);

// What can be said of them before anything is sent.
absl::Status CheckVerifyFlags(const VerifyFlags& flags);

// Sets what `call`, which is of `subject`, is compared with. The result keeps bytes that the call
// then borrows.
absl::StatusOr<Inputs> AddVerification(const Session& session, const Client& client,
                                       const Subject& subject, const VerifyFlags& flags,
                                       RunCall* call);

// What the exit code of a command says of a result. Where --verify was asked for and tells nothing,
// or nothing of a measurement, the command has failed, and standard error says so.
int VerifiedCode(const Session& session, const VerifyFlags& flags, const v1::RunSummary& summary);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_VERIFY_FLAGS_H_
