// Makes of this machine one without cuBLASLt, as the image gpu-runtime is: linked beside
// cuda_variants_test.cc, whose tests then meet what is chosen there.
#include <cstring>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "kernels/catalog/cublaslt.cuh"

// In place of the C library's: the catalogue looks for the library by it. Files that a test made
// are there as ever.
extern "C" int access(const char* path, int mode) noexcept {
  const bool library = std::strstr(path, "/libcublasLt.so") != nullptr;
  const std::string own = testing::TempDir();
  if (library && std::strncmp(path, own.c_str(), own.size()) != 0) return -1;
  return faccessat(AT_FDCWD, path, mode, 0);
}

namespace gridclock {
namespace {

#ifdef GRIDCLOCK_HAS_CUBLASLT
TEST(NoCublasLt, ThereIsNone) {
  EXPECT_EQ(cublaslt::FindLibrary(), "");
}
#endif

}  // namespace
}  // namespace gridclock
