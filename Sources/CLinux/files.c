#define _GNU_SOURCE
#include "files.h"

#include <linux/openat2.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

_Static_assert(DEFERD_O_PATH == O_PATH, "Swift's O_PATH must be the system's");

int deferd_open_beneath(int directory, const char *path, int flags, mode_t mode) {
    struct open_how how = {
        .flags = (unsigned long long)flags,
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

int deferd_rename(int directory, const char *name, const char *new_name, bool replacing) {
    return renameat2(directory, name, directory, new_name, replacing ? 0 : RENAME_NOREPLACE);
}

static int64_t nanoseconds(struct statx_timestamp time) {
    return time.tv_sec * 1000000000 + time.tv_nsec;
}

int deferd_status(int directory, const char *name, struct deferd_status *status) {
    struct statx entry;
    if (statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &entry) != 0) {
        return -1;
    }
    *status = (struct deferd_status){
        .inode = entry.stx_ino,
        .created = entry.stx_mask & STATX_BTIME ? nanoseconds(entry.stx_btime) : 0,
        .modified = nanoseconds(entry.stx_mtime),
        .size = (int64_t)entry.stx_size,
        .mode = entry.stx_mode,
        .links = entry.stx_nlink,
        .owner = entry.stx_uid,
        .group = entry.stx_gid,
    };
    return 0;
}

ssize_t deferd_access_list(int file, void *entries, size_t room) {
    ssize_t size = fgetxattr(file, "system.posix_acl_access", entries, room);
    if (size >= 0 || errno != EBADF) return size;
    // For a descriptor opened with O_PATH: this link refers to exactly the file that is open.
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return getxattr(path, "system.posix_acl_access", entries, room);
}

int deferd_set_access_list(int file, int is_default, const void *entries, size_t size) {
    return fsetxattr(file, is_default ? "system.posix_acl_default" : "system.posix_acl_access", entries, size, 0);
}

int deferd_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

void deferd_reserve(const char *path, long bytes) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    while (fallocate(file, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0 && errno == EINTR) {}
    close(file);
}
