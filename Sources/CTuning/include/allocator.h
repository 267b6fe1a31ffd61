#ifndef DEFERD_ALLOCATOR_H
#define DEFERD_ALLOCATOR_H

/// Sets glibc's allocator up for a process of few threads that runs for months: mallopt(3). To be called before threads.
/// Where deferd is built with jemalloc, that was set up before `main`, and this changes nothing.
void deferd_settle_allocator(void);

#endif
