#include "vfs.h"

#include "settings.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Why C: a VFS of SQLite is a struct of C functions, and what it knows of a file lies behind SQLite's own struct.
//
// SQLite's own VFS does all the work. Only xOpen is replaced, and some methods of a database's file (checks.c) and of its
// log (log.c): the file's object stays what it was, with a copy of its methods, and room behind it for what is known of
// the file.

static sqlite3_vfs ours;
static sqlite3_vfs *platform;

static int rounded(int size) { return (size + 15) & ~15; }

void *deferd_behind(sqlite3_file *file) { return (char *)file + rounded(platform->szOsFile); }

/// Whether a database stands alone in a directory that cannot be written, as on a disk that is mounted for reading only.
/// SQLite would make the index of a log there, which it wants of every database that is used with one. Nobody has this one
/// open, as then there is an index.
static int is_alone(const char *name) {
    char path[4096];
    struct stat status;
    if (name == NULL || snprintf(path, sizeof path, "%s-shm", name) >= (int)sizeof path) return 0;
    if (stat(path, &status) == 0) return 0;
    memcpy(strrchr(path, '-'), "-wal", 4);
    if (stat(path, &status) == 0 && status.st_size > 0) return 0;
    char *slash = strrchr(path, '/');
    if (slash == NULL) return 0;
    slash[1] = 0;
    return access(path, W_OK) != 0;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *opened) {
    (void)vfs;
    int code = platform->xOpen(platform, name, file, flags, opened);
    if (code != SQLITE_OK || file->pMethods == NULL) return code;
    if (flags & SQLITE_OPEN_MAIN_DB) deferd_open_checked(file, flags & SQLITE_OPEN_READONLY && is_alone(name));
    if (flags & SQLITE_OPEN_WAL) deferd_open_log(file);
    return code;
}

void deferd_register_vfs(void) {
    sqlite3_vfs *found = sqlite3_vfs_find(NULL);
    if (platform != NULL || found == NULL) return;
    int checks = deferd_room_for_checks(), log = deferd_room_for_log();
    ours = *found;
    ours.zName = "deferd";
    ours.szOsFile = rounded(found->szOsFile) + (checks > log ? checks : log);
    ours.xOpen = open_file;
    ours.pNext = NULL;
    platform = found;
    if (sqlite3_vfs_register(&ours, 1) != SQLITE_OK) platform = NULL;
}
