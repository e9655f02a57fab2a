// generate_values GENERATOR SEED DTYPE FIRST COUNT: the bytes of each element in hex, one a line.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "proto/types/generator.h"

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  auto generator = gridclock::ParseGenerator(argv[1]);
  const auto dtype = gridclock::ParseDType(argv[3]);
  if (!generator.ok() || !dtype) return 2;
  generator->seed = std::strtoull(argv[2], nullptr, 10);
  if (!gridclock::Validate(*generator, *dtype).ok()) return 2;
  const auto size = static_cast<std::size_t>(gridclock::SizeOf(*dtype));
  std::vector<std::byte> bytes(std::strtoull(argv[5], nullptr, 10) * size);
  gridclock::Generate(*generator, *dtype, std::strtoll(argv[4], nullptr, 10), bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::printf("%02x%s", static_cast<unsigned>(bytes[i]), (i + 1) % size == 0 ? "\n" : "");
  }
  return 0;
}
