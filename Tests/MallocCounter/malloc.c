#include "malloc_counter.h"

#include <stddef.h>

// Stands before glibc's in every program that this is linked into: glibc lets malloc be replaced so.
void *__libc_malloc(size_t size);

static __thread long count;

void *malloc(size_t size) {
    count++;
    return __libc_malloc(size);
}

long test_malloc_count(void) {
    return count;
}
