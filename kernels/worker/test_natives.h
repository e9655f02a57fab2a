// What guests of gridclock-test-worker run by name, as kind TEST_NATIVE. Never shipped.
//
//   square x, y, n: int                    y = x^2 of f32[n]
//   add a, b, c, n: int                    c = a + b of f32[n]; c may be a
//   print x, n: int                        "x[i] is V" for each of f32[n]
//   leave                                  nothing: outputs stay unwritten
//   scribble y, first: int64, count: int64   y[first] to y[first + count] of f32, wherever they lie
//   spin us: int                           computes so long
//   endless, endless_0 .. endless_49       never ends
//   crash, crash_0 .. crash_49             writes to address 0
//   pid y                                  the id of its process, as i32[1]
//   hunt y, first: int64, count: int64     how many of y[first] to y[first + count] of f32 are
//                                          what scribble writes, wherever they lie, as i32[1]
//   hunt_shared y                          how many of them lie in all that its process shares with
//                                          the server, as i32[1]
//   scribble_shared                        writes all that its process shares with the server
//   break_protocol                         says to the server what is no message
//   probe x, y, parent: int                what the sandbox says, as i32[6]: errno, 0 if it was
//   let, of
//                                          a socket, an exec, a fork, the file whose path lies at x
//                                          opened to be written, the same emptied, a signal to the
//                                          parent
#ifndef GRIDCLOCK_KERNELS_WORKER_TEST_NATIVES_H_
#define GRIDCLOCK_KERNELS_WORKER_TEST_NATIVES_H_

#include "kernels/worker/native.h"

namespace gridclock {

Natives TestNatives();

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_TEST_NATIVES_H_
