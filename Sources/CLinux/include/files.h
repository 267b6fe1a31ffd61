#ifndef DEFERD_FILES_H
#define DEFERD_FILES_H
#include <stdint.h>
#include <sys/types.h>

/// Opens `path` below `directory` and nowhere else: openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and
/// RESOLVE_NO_MAGICLINKS: a symbolic link anywhere on the way, or at its end, is ELOOP.
/// Returns a descriptor, or -1 with errno set. glibc has no wrapper for this call.
int deferd_open_beneath(int directory, const char *path, int flags, mode_t mode);

/// Renames within `directory`, or fails with EEXIST: renameat2(2) with RENAME_NOREPLACE.
/// Returns 0, or -1 with errno set. glibc shows this call to GNU sources only, which Swift's importer is not.
int deferd_rename_unless_exists(int directory, const char *name, const char *new_name);

/// What statx(2) tells of a file; times are nanoseconds since 1970.
struct deferd_status {
    uint64_t inode;
    /// 0 where the file system does not keep it.
    int64_t created;
    int64_t modified;
    int64_t size;
    uint32_t mode;
    uint32_t links;
    uint32_t owner;
};

/// Looks at `name` in `directory` without following a link, or at `directory` itself where `name` is empty.
/// Returns 0, or -1 with errno set. glibc shows this call to GNU sources only, which Swift's importer is not.
int deferd_status(int directory, const char *name, struct deferd_status *status);

#endif
