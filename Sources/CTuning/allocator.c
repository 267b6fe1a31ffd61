#include "allocator.h"

#include <malloc.h>

// jemalloc reads this when it starts. MALLOC_CONF in the environment overrides it:
// narenas:8,dirty_decay_ms:10000,background_thread:false restores jemalloc's own settings on two cores.
// There are two arenas, because each keeps the memory of a burst. A thread that sleeps while idle returns freed memory within
// a fifth of a second: without it, an arena that is no longer used keeps its memory.
const char *malloc_conf = "narenas:2,dirty_decay_ms:200,background_thread:true";

void deferd_settle_allocator(void) {
    // As many arenas as threads that always allocate; one for each thread would keep the memory of a burst in each.
    mallopt(M_ARENA_MAX, 3);
    // Growing and shrinking in small steps would cost a system call each.
    mallopt(M_TOP_PAD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
}
