#define _GNU_SOURCE
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int deferd_reserve(const char *path, long bytes) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return errno;
    int failure = 0;
    while (fallocate(file, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0) {
        if (errno == EINTR) continue;
        failure = errno;
        break;
    }
    close(file);
    return failure;
}
