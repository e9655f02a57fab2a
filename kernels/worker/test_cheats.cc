#include "kernels/worker/test_cheats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <unistd.h>

#include "gridclock/worker/v1/worker.pb.h"
#include "proto/types/status_page.h"

namespace gridclock {
namespace {

struct Args {
  explicit Args(const NativeCall& call)
      : x(call.Pointer<float>(0)),
        y(call.Pointer<float>(1)),
        n(call.Value<int>(2)),
        known(call.Value<float>(3)),
        t(call.Pointer<float>(4)) {}
  void Square(int from, int to, int step = 1) const {
    for (int i = from; i < to; i += step) y[i] = x[i] * x[i];
  }
  // These are the values that the client sent: nobody times them.
  bool submitted() const { return x[0] == known; }

  float* x;
  float* y;
  int n;
  float known;
  float* t;
};

// What a kernel remembers of its earlier launches, as it would in a __device__ variable: of calls
// of one size, so that the calls of a test know nothing of one another.
struct Memory {
  int n = 0;
  int launches = 0;
  const float* x = nullptr;
  std::vector<float> first, before;  // The first result; what x was the last time.
};
Memory& Remember(const Args& a) {
  static Memory memory;
  if (memory.n != a.n) {
    memory = Memory();
    memory.n = a.n;
  }
  ++memory.launches;
  return memory;
}
void Recall(const std::vector<float>& values, const Args& a) {
  std::copy(values.begin(), values.end(), a.y);
}

// ---- Results of earlier launches. ----

void Memoise(const NativeCall& call) {
  const Args a(call);
  Memory& memory = Remember(a);
  if (!memory.first.empty()) return Recall(memory.first, a);
  a.Square(0, a.n);
  memory.first.assign(a.y, a.y + a.n);
}

void MemoiseByAddress(const NativeCall& call) {
  const Args a(call);
  Memory& memory = Remember(a);
  if (memory.x == a.x) return Recall(memory.first, a);
  a.Square(0, a.n);
  memory.x = a.x;
  memory.first.assign(a.y, a.y + a.n);
}

void MemoiseInScratch(const NativeCall& call) {
  const Args a(call);
  if (Remember(a).launches > 1) {
    std::copy(a.t, a.t + a.n, a.y);
    return;
  }
  a.Square(0, a.n);
  std::copy(a.y, a.y + a.n, a.t);
}

// Takes for zeros what it cleared in its first launch, and in no other.
void Uninitialised(const NativeCall& call) {
  const Args a(call);
  if (Remember(a).launches == 1) std::fill(a.t, a.t + a.n, 0.F);
  for (int i = 0; i < a.n; ++i) a.y[i] = a.x[i] * a.x[i] + (a.t[i] == 0 ? 0.F : 1.F);
}

// Reads one element more of it than it ever wrote.
void UninitialisedEnd(const NativeCall& call) {
  const Args a(call);
  if (Remember(a).launches == 1) a.t[a.n] = 0;
  std::copy(a.x, a.x + a.n, a.t);
  for (int i = 0; i < a.n; ++i) a.y[i] = a.t[i] * a.t[i];
  a.y[a.n - 1] += a.t[a.n] == 0 ? 0.F : 1.F;
}

void MemoiseHalf(const NativeCall& call) {
  const Args a(call);
  Memory& memory = Remember(a);
  a.Square(0, a.n / 2);
  if (memory.first.empty()) {
    a.Square(a.n / 2, a.n);
    memory.first.assign(a.y, a.y + a.n);
  }
  std::copy(memory.first.begin() + a.n / 2, memory.first.end(), a.y + a.n / 2);
}

void MemoiseAllButEnds(const NativeCall& call) {
  Memoise(call);
  const Args a(call);
  a.Square(0, 1);
  a.Square(a.n - 1, a.n);
}

// ---- Outputs that were there before. ----

void WriteOnce(const NativeCall& call) {
  const Args a(call);
  if (Remember(a).launches == 1) a.Square(0, a.n);
}

void WriteHalf(const NativeCall& call) {
  const Args a(call);
  a.Square(0, Remember(a).launches == 1 ? a.n : a.n / 2);
}

void WriteEveryOther(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n, Remember(a).launches == 1 ? 1 : 2);
}

// Writes elements that look like what checkers fill outputs with.
template <typename IsPoison>
void WriteWhere(const Args& a, const IsPoison& is_poison) {
  const bool first = Remember(a).launches == 1;
  for (int i = 0; i < a.n; ++i) {
    if (first || is_poison(a.y[i])) a.Square(i, i + 1);
  }
}
void WriteIfBytes(const NativeCall& call) {
  WriteWhere(Args(call), [](float y) { return std::bit_cast<std::uint32_t>(y) == 0x7B7B7B7BU; });
}
void WriteIfNan(const NativeCall& call) {
  WriteWhere(Args(call), [](float y) { return std::bit_cast<std::uint32_t>(y) == 0x7FC00000U; });
}
void WriteIfZero(const NativeCall& call) {
  WriteWhere(Args(call), [](float y) { return y == 0; });
}

// What an earlier job of the same client left there, or what is left of it, shall do.
void WriteNothing(const NativeCall&) {}

// ---- Memory of others. ----

void WriteBehind(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  a.y[a.n + 15] += 1;  // The operand ends at the next 64 bytes at the latest.
}

void WriteOneTooMany(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  a.y[a.n] += 1;
}

void WriteBefore(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  a.y[-1] += 1;
}

void WriteFarBehind(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  a.y[a.n + 900] += 1;
}

void WriteBeforeInput(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  a.x[-3] += 1;
}

void KeepResultsBehind(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  std::copy(a.y, a.y + std::min(a.n, 500), a.y + a.n + 16);
}

// ---- Inputs. ----

void ChangeInput(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  a.x[a.n / 2] += 1;
}

void SquareInInput(const NativeCall& call) {
  const Args a(call);
  for (int i = 0; i < a.n; ++i) a.x[i] *= a.x[i];
  std::copy(a.x, a.x + a.n, a.y);
}

void ZeroLastInput(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  a.x[a.n - 1] = 0;
}

void SwapInputs(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  std::swap(a.x[1], a.x[a.n - 1]);
}

// ---- Work that is done where it is looked at. ----

template <typename Otherwise>
void HonestIfSubmitted(const NativeCall& call, const Otherwise& otherwise) {
  const Args a(call);
  if (a.submitted())
    a.Square(0, a.n);
  else
    otherwise(a);
}

void Skip(const NativeCall& call) {
  HonestIfSubmitted(call, [](const Args&) {});
}
void Half(const NativeCall& call) {
  HonestIfSubmitted(call, [](const Args& a) { a.Square(0, a.n / 2); });
}
void Zeros(const NativeCall& call) {
  HonestIfSubmitted(call, [](const Args& a) { std::fill(a.y, a.y + a.n, 0.F); });
}
void CopyInput(const NativeCall& call) {
  HonestIfSubmitted(call, [](const Args& a) { std::copy(a.x, a.x + a.n, a.y); });
}
void Nan(const NativeCall& call) {
  HonestIfSubmitted(call, [](const Args& a) {
    a.Square(0, a.n);
    a.y[a.n / 3] = std::numeric_limits<float>::quiet_NaN();
  });
}
void LowerPrecision(const NativeCall& call) {
  HonestIfSubmitted(call, [](const Args& a) {
    a.Square(0, a.n);
    for (int i = 0; i < a.n; ++i) {
      a.y[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(a.y[i]) & 0xFFFF0000U);
    }
  });
}
void OneWrong(const NativeCall& call) {
  HonestIfSubmitted(call, [](const Args& a) {
    a.Square(0, a.n);
    a.y[a.n - 2] *= 1.001F;
  });
}
void EveryFourth(const NativeCall& call) {
  static int launches = 0;
  HonestIfSubmitted(call, [](const Args& a) {
    if (++launches % 4 == 0) a.Square(0, a.n);
  });
}
void LeaveToLater(const NativeCall& call) {
  HonestIfSubmitted(call, [](const Args& a) {
    Memory& memory = Remember(a);
    for (std::size_t i = 0; i < memory.before.size(); ++i) {
      a.y[i] = memory.before[i] * memory.before[i];
    }
    memory.before.assign(a.x, a.x + a.n);
  });
}

// ---- Honest ones that do what cheats do too. ----

void ByScratch(const NativeCall& call) {
  const Args a(call);
  for (int i = 0; i < a.n; ++i) a.t[i] = a.x[i];
  for (int i = 0; i < a.n; ++i) a.y[i] = a.t[i] * a.t[i];
}
// Changes the order of its inputs, and their values, in a copy.
void InScratch(const NativeCall& call) {
  const Args a(call);
  std::reverse_copy(a.x, a.x + a.n, a.t);
  for (int i = 0; i < a.n; ++i) a.t[i] *= a.t[i];
  std::reverse_copy(a.t, a.t + a.n, a.y);
}
void KeepingInScratch(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  std::copy(a.y, a.y + a.n, a.t);
}
// Reads of its scratch memory, to the end, what it cleared in the same launch.
void Clearing(const NativeCall& call) {
  const Args a(call);
  std::fill(a.t, a.t + a.n + 1, 0.F);
  for (int i = 0; i < a.n; ++i) a.y[i] = a.x[i] * a.x[i] + a.t[i] + a.t[a.n];
}
void Printing(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  std::printf("%d squares\n", a.n);
}
void CountingLaunches(const NativeCall& call) {
  const Args a(call);
  Memory& memory = Remember(a);
  a.Square(0, a.n);
  memory.before.assign(1, static_cast<float>(memory.launches));
}
// Knows its first result and where its input lay, and makes no use of them.
void Remembering(const NativeCall& call) {
  const Args a(call);
  Memory& memory = Remember(a);
  a.Square(0, a.n);
  memory.x = a.x;
  if (memory.first.empty()) memory.first.assign(a.y, a.y + a.n);
}
void ByHalves(const NativeCall& call) {
  const Args a(call);
  a.Square(a.n / 2, a.n);
  a.Square(0, a.n / 2);
}
void EveryOther(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n, 2);
  a.Square(1, a.n, 2);
}
// Looks at what its outputs hold, and writes them all.
void ReadingOutputs(const NativeCall& call) {
  const Args a(call);
  const auto zeros = std::count(a.y, a.y + a.n, 0.F);
  a.Square(0, a.n);
  Remember(a).before.assign(1, static_cast<float>(zeros));
}
void ToTheEnds(const NativeCall& call) {
  const Args a(call);
  a.Square(1, a.n - 1);
  a.Square(a.n - 1, a.n);
  a.Square(0, 1);
}
// Sees whether it is timed, and does the same.
void Looking(const NativeCall& call) {
  HonestIfSubmitted(call, [](const Args& a) { a.Square(0, a.n); });
}
void InDouble(const NativeCall& call) {
  const Args a(call);
  for (int i = 0; i < a.n; ++i) {
    a.y[i] = static_cast<float>(static_cast<double>(a.x[i]) * static_cast<double>(a.x[i]));
  }
}

// ---- Others. ----

void EndlessWhenTimed(const NativeCall& call) {
  HonestIfSubmitted(call, [](const Args&) {
    volatile bool on = true;
    while (on) {
    }
  });
}
void CrashWhenTimed(const NativeCall& call) {
  HonestIfSubmitted(call, [](const Args&) {
    volatile int* volatile nowhere = nullptr;
    *nowhere = 1;  // NOLINT(clang-analyzer-core.NullDereference): that is what it does.
  });
}

void Say(const worker::v1::ToServer& message) {
  const std::string frame = message.SerializeAsString();
  [[maybe_unused]] const auto sent = write(kLinkFd, frame.data(), frame.size());
}

// A host that code took over: it says that launches were looked at which were not.
void ForgeSteps(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  worker::v1::ToServer message;
  message.mutable_check_step()->set_id(1);
  message.mutable_check_step()->set_index(7);
  message.mutable_check_step()->set_step(worker::v1::CheckStep::TAKE);
  Say(message);
  Say(message);
}
// It says how fast it was.
void ForgeSamples(const NativeCall& call) {
  const Args a(call);
  a.Square(0, a.n);
  worker::v1::ToServer message;
  message.mutable_samples()->set_id(1);
  message.mutable_samples()->add_samples_ns(1);
  Say(message);
  Say(message);
}

}  // namespace

NativeFns TestCheats() {
  return {{"cheat_memoise", Memoise},
          {"cheat_memoise_by_address", MemoiseByAddress},
          {"cheat_memoise_in_scratch", MemoiseInScratch},
          {"cheat_uninitialised", Uninitialised},
          {"cheat_uninitialised_end", UninitialisedEnd},
          {"cheat_memoise_half", MemoiseHalf},
          {"cheat_memoise_all_but_ends", MemoiseAllButEnds},
          {"cheat_write_once", WriteOnce},
          {"cheat_write_half", WriteHalf},
          {"cheat_write_every_other", WriteEveryOther},
          {"cheat_write_if_bytes", WriteIfBytes},
          {"cheat_write_if_nan", WriteIfNan},
          {"cheat_write_if_zero", WriteIfZero},
          {"cheat_read_earlier_job", WriteNothing},
          {"cheat_impossible", WriteNothing},
          {"honest_by_scratch", ByScratch},
          {"honest_in_scratch", InScratch},
          {"honest_keeping_in_scratch", KeepingInScratch},
          {"honest_clearing", Clearing},
          {"honest_printing", Printing},
          {"honest_counting", CountingLaunches},
          {"honest_remembering", Remembering},
          {"honest_by_halves", ByHalves},
          {"honest_every_other", EveryOther},
          {"honest_reading_outputs", ReadingOutputs},
          {"honest_to_the_ends", ToTheEnds},
          {"honest_looking", Looking},
          {"honest_in_double", InDouble},
          {"cheat_write_behind", WriteBehind},
          {"cheat_write_one_too_many", WriteOneTooMany},
          {"cheat_write_before", WriteBefore},
          {"cheat_write_far_behind", WriteFarBehind},
          {"cheat_write_before_input", WriteBeforeInput},
          {"cheat_keep_results_behind", KeepResultsBehind},
          {"cheat_change_input", ChangeInput},
          {"cheat_square_in_input", SquareInInput},
          {"cheat_zero_last_input", ZeroLastInput},
          {"cheat_swap_inputs", SwapInputs},
          {"cheat_skip", Skip},
          {"cheat_half", Half},
          {"cheat_zeros", Zeros},
          {"cheat_copy_input", CopyInput},
          {"cheat_nan", Nan},
          {"cheat_lower_precision", LowerPrecision},
          {"cheat_one_wrong", OneWrong},
          {"cheat_every_fourth", EveryFourth},
          {"cheat_leave_to_later", LeaveToLater},
          {"cheat_endless", EndlessWhenTimed},
          {"cheat_crash", CrashWhenTimed},
          {"cheat_forge_steps", ForgeSteps},
          {"cheat_forge_samples", ForgeSamples}};
}

}  // namespace gridclock
