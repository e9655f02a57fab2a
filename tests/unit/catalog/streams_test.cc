// Outputs so large that they go past the caches, against what plain loops make of them: at each CPU
// level, as each has vectors of its own length.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kernels/device/cpu/tbb_threads.h"
#include "proto/types/convert.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/catalog/launch.h"

namespace gridclock {
namespace {

// From 16 MiB on.
constexpr std::int64_t kStreamed = std::int64_t{17} << 20;

using Raw = std::vector<std::byte>;

// Memory for one output that begins so many bytes behind a line of the cache, between guards.
class Output {
 public:
  Output(std::int64_t bytes, std::int64_t past_line)
      : all_(static_cast<std::size_t>(bytes + 4 * kLine), kPoison), bytes_(bytes) {
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(all_.data()));
    begin_ = kLine + (kLine - address % kLine) % kLine + past_line;
  }
  std::byte* data() { return all_.data() + begin_; }
  bool GuardsHold() const {
    const auto is_poison = [](std::byte b) { return b == kPoison; };
    return std::all_of(all_.begin(), all_.begin() + begin_, is_poison) &&
           std::all_of(all_.begin() + begin_ + bytes_, all_.end(), is_poison);
  }

 private:
  static constexpr std::int64_t kLine = 64;
  static constexpr std::byte kPoison{0xAB};
  Raw all_;
  std::int64_t bytes_, begin_;
};

absl::Status Run(const char* name, const TensorSpec& x, std::vector<NamedAttribute> attributes,
                 const Raw& from, std::byte* to) {
  GC_ASSIGN_OR_RETURN(const Registry registry, Registry::Create(BuiltInKernels()));
  const RegisteredKernel& kernel = *registry.Find(name);
  const OperandValue value{.is_list = false, .tensors = {x}};
  GC_ASSIGN_OR_RETURN(const Binding binding, Bind(kernel.spec, {{"x", value}}, attributes));
  TbbThreads threads(3);
  return LaunchFastest(kernel, binding, {const_cast<std::byte*>(from.data()), to}, threads);
}

Raw RandomBytes(std::int64_t bytes) {
  Raw raw(static_cast<std::size_t>(bytes + 8));
  std::mt19937_64 random(7);
  for (std::int64_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(raw.data() + i, &word, sizeof(word));
  }
  raw.resize(static_cast<std::size_t>(bytes));
  return raw;
}

Raw Repeated(const Raw& pattern, std::int64_t bytes) {
  Raw all(static_cast<std::size_t>(bytes));
  const auto size = std::ssize(pattern);
  for (std::int64_t i = 0; i < bytes; i += size) {
    std::copy_n(pattern.begin(), std::min(size, bytes - i), all.begin() + i);
  }
  return all;
}

void ExpectBytes(const Output& output, const std::byte* got, const Raw& want,
                 const std::string& what) {
  EXPECT_TRUE(output.GuardsHold()) << what << ": bytes beside the output were written";
  const auto at = std::mismatch(want.begin(), want.end(), got).first;
  EXPECT_EQ(at, want.end()) << what << ": byte " << at - want.begin() << " of " << want.size();
}

// Elements repeat after a prime number of them, so that no block or vector equals the next one.
void ExpectCast(DType from, DType to, std::int64_t past_line) {
  constexpr std::int64_t kPeriod = 65'537;
  Raw in(static_cast<std::size_t>(kPeriod * SizeOf(from)));
  Raw out(static_cast<std::size_t>(kPeriod * SizeOf(to)));
  for (std::int64_t i = 0; i < kPeriod; ++i) {
    StoreFromDouble(from, in.data(), i, static_cast<double>(i * 7919 % kPeriod - 30'000) * 0.013);
    StoreFromDouble(to, out.data(), i, LoadAsDouble(from, in.data(), i));
  }
  const std::int64_t n = kStreamed / SizeOf(to) + 13;
  Output output(n * SizeOf(to), past_line);
  ASSERT_THAT(Run("cast", {from, {n}}, {{"to", to}}, Repeated(in, n * SizeOf(from)), output.data()),
              IsOk());
  ExpectBytes(output, output.data(), Repeated(out, n * SizeOf(to)),
              absl::StrCat(Name(from), " to ", Name(to), ", ", past_line, " past a line"));
}

// To where a vector begins, and an element behind that.
TEST(Streams, OfCasts) {
  constexpr std::pair<DType, DType> kCasts[] = {{DType::kF32, DType::kBF16},
                                                {DType::kF32, DType::kF8E4M3},
                                                {DType::kF32, DType::kF64},
                                                {DType::kBF16, DType::kF32},
                                                {DType::kI32, DType::kF32}};
  for (const auto& [from, to] : kCasts) {
    ExpectCast(from, to, 0);
    ExpectCast(from, to, SizeOf(to));
  }
}

// [rows, middle, columns] with the first and the last exchanged.
template <typename T>
Raw Turned(const Raw& x, std::int64_t rows, std::int64_t middle, std::int64_t columns) {
  Raw y(x.size());
  const auto* from = reinterpret_cast<const T*>(x.data());
  auto* to = reinterpret_cast<T*>(y.data());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t m = 0; m < middle; ++m) {
      for (std::int64_t c = 0; c < columns; ++c) {
        to[(c * middle + m) * rows + r] = from[(r * middle + m) * columns + c];
      }
    }
  }
  return y;
}

template <typename T>
void ExpectTranspose(DType dtype, std::int64_t rows, std::int64_t middle, std::int64_t columns) {
  const std::int64_t bytes = rows * middle * columns * std::int64_t{sizeof(T)};
  ASSERT_GE(bytes, kStreamed);
  const Raw x = RandomBytes(bytes);
  const Raw want = Turned<T>(x, rows, middle, columns);
  for (const std::int64_t past_line : {0, 64 / 2, int{sizeof(T)}}) {
    Output output(bytes, past_line);
    ASSERT_THAT(Run("transpose", {dtype, {rows, middle, columns}},
                    {{"i", std::int64_t{0}}, {"j", std::int64_t{2}}}, x, output.data()),
                IsOk());
    ExpectBytes(output, output.data(), want, absl::StrCat(Name(dtype), ", ", past_line));
  }
}

TEST(Streams, OfTransposes) {
  ExpectTranspose<std::uint32_t>(DType::kF32, 2100, 1, 2300);
  ExpectTranspose<std::uint64_t>(DType::kF64, 2100, 1, 2300);
}

TEST(Streams, OfTransposedBytes) {
  ExpectTranspose<std::uint8_t>(DType::kU8, 4500, 1, 4100);
}

TEST(Streams, OfTransposesWithSomethingBetween) {
  ExpectTranspose<std::uint32_t>(DType::kF32, 80, 35, 1700);
  ExpectTranspose<std::uint16_t>(DType::kBF16, 1300, 3, 2500);
}

}  // namespace
}  // namespace gridclock
