#pragma once
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// O_PATH, which refers to a file without opening it: glibc declares it for GNU sources only, which excludes Swift's importer.
#define DEFERD_O_PATH 010000000

/// Opens `path` below `directory` and nowhere else: openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and
/// RESOLVE_NO_MAGICLINKS. A symbolic link in the path or at its end gives ELOOP.
/// Returns a descriptor, or -1 with errno set. glibc has no wrapper for this call.
int deferd_open_beneath(int directory, const char *path, int flags, mode_t mode);

/// Renames within `directory`: renameat2(2), which fails with EEXIST if the new name exists, unless it is `replacing` it.
/// Returns 0, or -1 with errno set. glibc declares this call for GNU sources only, which excludes Swift's importer.
int deferd_rename(int directory, const char *name, const char *new_name, bool replacing);

/// The status of a file from statx(2); times are nanoseconds since 1970.
struct deferd_status {
    uint64_t inode;
    /// 0 if the file system does not record it.
    int64_t created;
    int64_t modified;
    int64_t size;
    uint32_t mode;
    uint32_t links;
    uint32_t owner;
    uint32_t group;
};

/// Gets the status of `name` in `directory` without following a link, or of `directory` itself if `name` is empty.
/// Returns 0, or -1 with errno set. glibc declares this call for GNU sources only, which excludes Swift's importer.
int deferd_status(int directory, const char *name, struct deferd_status *status);

/// Reads the access list of an open file, including one opened with O_PATH, in the kernel's format
/// (<linux/posix_acl_xattr.h>). Returns its size, or -1 with errno set: ENODATA if the file has only its mode. glibc declares
/// these calls in a header that Swift's Glibc module lacks, and libacl reads default lists by name only, not by descriptor.
ssize_t deferd_access_list(int file, void *entries, size_t room);

/// The name of an entry, valid until the next one is read. Swift would copy the whole array that the header declares, but the
/// kernel's entries end with their names: after the last one, there is other memory, or none.
static inline const char *deferd_entry_name(const struct dirent *entry) { return entry->d_name; }

/// Sets the access list of an open file or directory, or the default list for new files in it. Returns 0, or -1 with errno set.
int deferd_set_access_list(int file, int is_default, const void *entries, size_t size);

/// Accepts a connection as nonblocking and close-on-exec: accept4(2), which Swift's Glibc module lacks.
int deferd_accept(int listener);

/// Has the file system keep room for the first bytes of a file, if it can; the file stays as long as it is: fallocate(2) with
/// FALLOC_FL_KEEP_SIZE. glibc declares this call for GNU sources only, which excludes Swift's importer.
void deferd_reserve(const char *path, long bytes);
