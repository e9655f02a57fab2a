// What malloc keeps of the memory that calls let go.
#ifndef GRIDCLOCK_SERVER_HEAP_H_
#define GRIDCLOCK_SERVER_HEAP_H_

#include "server/core/idle_pages.h"

namespace gridclock {

// Pages that messages come in are freed by other threads than those that took them; the defaults
// give them back to the system each time, and three of four pages are faulted in again.
void KeepPages();

// Of this process.
IdlePages::Heap HeapOfMalloc();

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_HEAP_H_
