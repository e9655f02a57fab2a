// Prints docs/metrics.md.
#include <iostream>

#include "server/metrics/doc.h"

int main() {
  std::cout << gridclock::MetricsPage();
}
