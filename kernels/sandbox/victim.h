// Whom the system ends where memory runs out.
#ifndef GRIDCLOCK_KERNELS_SANDBOX_VICTIM_H_
#define GRIDCLOCK_KERNELS_SANDBOX_VICTIM_H_

namespace gridclock {

// This process and those that it starts, before all others: the end of a worker costs one call, the
// end of the server all of them. MUST come before PR_SET_DUMPABLE, which takes the file away. A
// system that refuses is a line in the log.
void BeFirstVictim();

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_SANDBOX_VICTIM_H_
