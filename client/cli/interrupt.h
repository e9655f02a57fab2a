// Ctrl-C as something to be asked for.
#ifndef GRIDCLOCK_CLIENT_CLI_INTERRUPT_H_
#define GRIDCLOCK_CLIENT_CLI_INTERRUPT_H_

#include <csignal>

namespace gridclock::cli {

// While it lives the first Ctrl-C is noted and does not end the program; the second one does. One
// at a time.
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

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_INTERRUPT_H_
