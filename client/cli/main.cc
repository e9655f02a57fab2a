#include <cstdlib>
#include <iostream>

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <malloc.h>

#include "client/cli/app.h"
#include "client/cli/interrupt.h"

int main(int argc, char** argv) {
  // Tensors come and go: memory that is kept needs no new pages. Halves the cost of big transfers.
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  // What it logs of a failed connection is in the error that we print.
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
  google::protobuf::SetLogHandler(nullptr);  // A text that is not UTF-8 is refused by the server.
  gridclock::cli::Console console{std::cout, std::cerr, gridclock::cli::DetectTerminal()};
  const int code = gridclock::cli::Main({argv + 1, argv + argc}, console);
  if (code == gridclock::cli::kInterrupted) gridclock::cli::DieOfInterrupt();
  return code;
}
