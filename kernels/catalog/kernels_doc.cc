// Writes docs/kernels.md anew.
#include <fstream>
#include <iostream>
#include <iterator>

#include "kernels/api/kernels_page.h"
#include "kernels/catalog/catalog.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: gridclock-kernels-doc docs/kernels.md\n";
    return 2;
  }
  const auto registry = gridclock::Registry::Create(gridclock::BuiltInKernels());
  if (!registry.ok()) {
    std::cerr << registry.status() << "\n";
    return 1;
  }
  std::ifstream in(argv[1]);
  const std::string committed{std::istreambuf_iterator<char>(in), {}};
  if (committed.empty()) {
    // Without CUDA the lines of GPUs would be lost.
    std::cerr << "cannot read " << argv[1] << ": want the page that there is\n";
    return 1;
  }
  std::ofstream out(argv[1]);
  out << gridclock::KernelsPage(*registry, committed) << std::flush;
  if (!out) {
    std::cerr << "cannot write " << argv[1] << "\n";
    return 1;
  }
}
