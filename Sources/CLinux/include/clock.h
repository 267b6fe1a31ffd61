#pragma once
#include <stdbool.h>
#include <stdint.h>

/// A descriptor that becomes readable when the wall clock is set: timerfd_create(2) with TFD_TIMER_CANCEL_ON_SET, which
/// Swift's Glibc module lacks. Returns -1 with errno set if the kernel does not support such timers.
int deferd_watch_clock(void);

/// Makes the descriptor wait for the next change of the clock. Returns 0, or -1 with errno set.
int deferd_watch_clock_again(int watch);

/// Reads a whole text as a time in UTC: strptime(3), which glibc declares for X/Open sources only. `seconds` are since 1970.
bool deferd_read_time(const char *text, const char *form, int64_t *seconds);
