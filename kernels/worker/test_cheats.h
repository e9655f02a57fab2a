// Functions that stand in for submitted code that was written to deceive who checks or times it,
// for gridclock-test-worker. All take x, y, n: int, known: float, t and are to give y = x^2 of
// f32[n]; t is scratch of f32[n + 1], `known` the first value of the submitted x. tests/integrity
// says what each pretends and what meets it.
#ifndef GRIDCLOCK_KERNELS_WORKER_TEST_CHEATS_H_
#define GRIDCLOCK_KERNELS_WORKER_TEST_CHEATS_H_

#include "kernels/worker/native.h"

namespace gridclock {

// Each is called "cheat_" and its name there; what does the same as one may, "honest_".
NativeFns TestCheats();

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_TEST_CHEATS_H_
