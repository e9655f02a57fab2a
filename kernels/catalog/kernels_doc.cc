// Writes docs/kernels.md anew.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <system_error>

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
  // Beside it, then in its place: what is cut off here leaves the page that there was.
  const std::filesystem::path page = argv[1], beside = page.string() + ".new";
  std::ofstream out(beside);
  out << gridclock::KernelsPage(*registry, committed);
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(beside, page, error);
  if (!out || error) {
    std::cerr << "cannot write " << argv[1] << (error ? ": " + error.message() : "") << "\n";
    std::filesystem::remove(beside, error);
    return 1;
  }
}
