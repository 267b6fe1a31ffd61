#ifndef DEFERD_MEMORY_H
#define DEFERD_MEMORY_H

/// Sets the allocator up for a process of few threads that runs for months. To be called before threads: jemalloc was set up
/// before `main`, and this is for glibc's (mallopt(3)) where deferd is built without it.
void deferd_settle_allocator(void);

#endif
