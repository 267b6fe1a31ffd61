#ifndef DEFERD_FILES_H
#define DEFERD_FILES_H
#include <dirent.h>
#include <stdint.h>
#include <sys/types.h>

/// O_PATH, which names a file without opening it: glibc shows it to GNU sources only, which Swift's importer is not.
#define DEFERD_O_PATH 010000000

/// Opens `path` below `directory` and nowhere else: openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and
/// RESOLVE_NO_MAGICLINKS: a symbolic link anywhere on the way, or at its end, is ELOOP.
/// Returns a descriptor, or -1 with errno set. glibc has no wrapper for this call.
int deferd_open_beneath(int directory, const char *path, int flags, mode_t mode);

/// Renames within `directory`, or fails with EEXIST: renameat2(2) with RENAME_NOREPLACE.
/// Returns 0, or -1 with errno set. glibc shows this call to GNU sources only, which Swift's importer is not.
int deferd_rename_unless_exists(int directory, const char *name, const char *new_name);

/// What statx(2) tells of a file; times are nanoseconds since 1970.
struct deferd_status {
    uint64_t device;
    uint64_t inode;
    /// 0 where the file system does not keep it.
    int64_t created;
    int64_t modified;
    int64_t size;
    uint32_t mode;
    uint32_t links;
    uint32_t owner;
    uint32_t group;
};

/// Looks at `name` in `directory` without following a link, or at `directory` itself where `name` is empty.
/// Returns 0, or -1 with errno set. glibc shows this call to GNU sources only, which Swift's importer is not.
int deferd_status(int directory, const char *name, struct deferd_status *status);

/// Reads the access list of an open file, also of one opened with O_PATH, as the kernel writes it (<linux/posix_acl_xattr.h>).
/// Returns its size, or -1 with errno set: ENODATA where the file's mode says all. glibc declares these calls in a header
/// that Swift's Glibc module lacks; libacl knows no default list by descriptor, only by name.
ssize_t deferd_access_list(int file, void *entries, size_t room);

/// The name of an entry, which is there until the next one is read. Swift would take the whole array that the header declares,
/// and the kernel's entries end with their names: behind the last one lies other memory, or none.
static inline const char *deferd_entry_name(const struct dirent *entry) { return entry->d_name; }

/// What changes when the machine restarts, empty where that is not known; it is there until this thread asks again. A unit that
/// hides the kernel's boot id gives it as $DEFERD_BOOT.
const char *deferd_boot_id(void);

/// Gives an open file or directory an access list, or the one that new files in it get. Returns 0, or -1 with errno set.
int deferd_set_access_list(int file, int is_default, const void *entries, size_t size);

#endif
