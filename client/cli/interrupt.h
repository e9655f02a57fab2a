// Ctrl-C as something to be asked for.
#ifndef GRIDCLOCK_CLIENT_CLI_INTERRUPT_H_
#define GRIDCLOCK_CLIENT_CLI_INTERRUPT_H_

#include <csignal>

namespace gridclock::cli {

// The code of a command that has said all after a Ctrl-C: the program is to die of it.
constexpr int kInterrupted = 130;

// While it lives the first Ctrl-C is noted and does not end the program; the second one does. One
// at a time. Where it was ignored before, as in the background of a shell, it is still.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool came() const;

 private:
  struct sigaction before_ = {};
};

// A shell that waits for the program then ends its own loop.
void DieOfInterrupt();

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_INTERRUPT_H_
