#ifndef DEFERD_ALLOCATOR_H
#define DEFERD_ALLOCATOR_H

/// Configures glibc's allocator for a process with few threads that runs for months: mallopt(3). Call it before starting
/// threads. With jemalloc, which was configured before `main`, it has no effect.
void deferd_settle_allocator(void);

#endif
