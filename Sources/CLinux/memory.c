#include "memory.h"

#include <malloc.h>

void deferd_settle_allocator(void) {
    // As many arenas as threads that allocate all the time; one for each thread would each keep what a burst took.
    mallopt(M_ARENA_MAX, 3);
    // Small steps up and down would cost a system call each.
    mallopt(M_TOP_PAD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
}
