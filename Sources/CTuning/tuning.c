#define _GNU_SOURCE
#include "tuning.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

// jemalloc reads this when it starts. MALLOC_CONF in the environment overrides it:
// dirty_decay_ms:10000,background_thread:false restores jemalloc's own settings. A thread that sleeps while idle returns freed
// memory within a fifth of a second: without it, an arena that is no longer used keeps its memory.
const char *malloc_conf = "dirty_decay_ms:200,background_thread:true";

static int release(struct dl_phdr_info *image, size_t size, void *data) {
    (void)size;
    (void)data;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int index = 0; index < image->dlpi_phnum; index++) {
        const ElfW(Phdr) *segment = &image->dlpi_phdr[index];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0) continue;
        uintptr_t start = (image->dlpi_addr + segment->p_vaddr + page - 1) & ~(page - 1);
        uintptr_t end = (image->dlpi_addr + segment->p_vaddr + segment->p_memsz) & ~(page - 1);
        // Only pages that equal the file: no data is lost, and pages that are needed come back.
        if (end > start) madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

void deferd_release_image(void) {
    dl_iterate_phdr(release, NULL);
}
