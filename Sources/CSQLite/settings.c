#define _GNU_SOURCE
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

void deferd_settle_database(void) {
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_URI, 1);
}

void deferd_reserve(const char *path, long bytes) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    while (fallocate(file, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0 && errno == EINTR) {}
    close(file);
}
