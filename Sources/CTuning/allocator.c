#include "allocator.h"

#include <malloc.h>

// For jemalloc, which reads it when it starts. MALLOC_CONF in the environment overrides it: with
// narenas:8,dirty_decay_ms:10000, which are jemalloc's own settings on two cores, it does without. Two arenas, as each keeps
// what a burst took; what was freed is given back within about a second.
const char *malloc_conf = "narenas:2,dirty_decay_ms:1000";

void deferd_settle_allocator(void) {
    // As many arenas as threads that allocate all the time; one for each thread would each keep what a burst took.
    mallopt(M_ARENA_MAX, 3);
    // Small steps up and down would cost a system call each.
    mallopt(M_TOP_PAD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
}
