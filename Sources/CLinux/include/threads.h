#pragma once
#include <stddef.h>

/// Runs `body(context)` on a new detached thread with a stack of that size: pthread_create(3). Returns 0 or an error number.
/// Swift finds the thread's attributes in several modules at once and cannot use any of them.
int deferd_start_thread(size_t stack_size, void *(*body)(void *context), void *context);
