#include "client/cli/interrupt.h"

namespace gridclock::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

Interrupt::Interrupt() {
  interrupted = 0;
  sigaction(SIGINT, nullptr, &before_);
  if (before_.sa_handler == SIG_IGN) return;
  struct sigaction note = {};
  note.sa_handler = [](int) { interrupted = 1; };
  note.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &note, nullptr);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_, nullptr);
}

bool Interrupt::came() const {
  return interrupted != 0;
}

void DieOfInterrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

}  // namespace gridclock::cli
