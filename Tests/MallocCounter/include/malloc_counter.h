#ifndef MALLOC_COUNTER_H
#define MALLOC_COUNTER_H

/// How often this thread has called malloc(3) so far, Swift's objects among it.
long test_malloc_count(void);

#endif
