#ifndef DEFERD_THREADS_H
#define DEFERD_THREADS_H
#include <stddef.h>

/// Runs `body(context)` on a new thread with a stack of that size, which nobody waits for: pthread_create(3).
/// Returns 0, or the number of the error. Swift sees the thread's attributes in several modules at once, and takes them of
/// none.
int deferd_start_thread(size_t stack_size, void *(*body)(void *context), void *context);

#endif
