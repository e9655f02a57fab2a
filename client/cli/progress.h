// One line of a terminal that is drawn again and again. Elsewhere only why a call waits.
#ifndef GRIDCLOCK_CLIENT_CLI_PROGRESS_H_
#define GRIDCLOCK_CLIENT_CLI_PROGRESS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/interrupt.h"
#include "client/cli/terminal.h"
#include "client/cpp/client.h"

namespace gridclock::cli {

class ProgressLine {
 public:
  explicit ProgressLine(Console& console) : console_(console) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Draws at most 20 times a second.
  void Show(const std::string& text);
  void Clear();
  // A call is tried again: says why, once, where there is no terminal. Elsewhere Show does.
  void Waits(const std::string& title, const absl::Status& why);

 private:
  Console& console_;
  absl::Time last_ = absl::InfinitePast();
  bool shown_ = false;
  bool said_why_ = false;
};

// Tells of a measurement while it runs. The line must outlive the call.
RunEvents MeasureEvents(ProgressLine& line, const std::string& title);

// Keeps the samples of a measurement as they come, warm-ups aside: a summary has none where they
// are too many for a message. `samples` must outlive the call.
void KeepSamples(std::vector<double>* samples, RunEvents* events);

// Runs `call`; from the first second on the line says for how long, and why it is tried again.
absl::StatusOr<RunResult> RunWithProgress(const Client& client, const RunCall& call,
                                          const std::string& title, ProgressLine& line);

// Runs `call`, and cancels it when Ctrl-C comes.
absl::StatusOr<RunResult> RunUntil(const Interrupt& interrupt, const Client& client,
                                   const RunCall& call, RunEvents events);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_PROGRESS_H_
