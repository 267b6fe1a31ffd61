#include "allocator.h"

#include <malloc.h>

// For jemalloc, which reads it when it starts. MALLOC_CONF in the environment overrides it: with
// narenas:8,dirty_decay_ms:10000,background_thread:false, which are jemalloc's own settings on two cores, it does without.
// Two arenas, as each keeps what a burst took. What was freed is given back within a fifth of a second, by a thread that
// sleeps while there is nothing: without it an arena that nothing is asked of any more keeps all.
const char *malloc_conf = "narenas:2,dirty_decay_ms:200,background_thread:true";

void deferd_settle_allocator(void) {
    // As many arenas as threads that allocate all the time; one for each thread would each keep what a burst took.
    mallopt(M_ARENA_MAX, 3);
    // Small steps up and down would cost a system call each.
    mallopt(M_TOP_PAD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
}
