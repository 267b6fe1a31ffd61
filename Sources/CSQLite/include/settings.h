#ifndef DEFERD_SQLITE_SETTINGS_H
#define DEFERD_SQLITE_SETTINGS_H

/// Has SQLite not count its memory: it takes a lock for that at every allocation. To be called before SQLite is used;
/// afterwards it does nothing.
void deferd_settle_database(void);

/// Has the file system keep room for the first bytes of a file, which stays as long as it is; 0, or the reason why it did
/// not as an error number. It is C as Swift does not see fallocate(2).
int deferd_reserve(const char *path, long bytes);

/// Makes an open file at least so long, with room on the disk for all of it; 0, or the reason why not as an error number.
int deferd_extend(int file, long size);

/// Registers the VFS "deferd", which SQLite opens files with from then on. To be called by one thread; a database that is
/// open by then goes on without.
///
/// It keeps a checksum in the last 8 bytes of each page of a database that reserves them, and refuses a page whose bytes
/// are not what was written, as damaged. Other databases are as always. Pages in the log have none: SQLite has checksums
/// of its own there. What it does for the log says deferd_gather_log. A database that is opened for reading only in a
/// directory that cannot be written, and has no log, is taken for one that nobody changes: else SQLite could not read it.
void deferd_register_vfs(void);

struct sqlite3;

/// Whether the pages in the file of an open database have checksums, as far as it was read.
int deferd_has_checks(struct sqlite3 *database);

/// Has the pages of an open database checked whatever its file says, and those of a new one have checksums from the first
/// one written; 0 where its file cannot be checked.
int deferd_expect_checks(struct sqlite3 *database);

/// Has an open database write each transaction into its log with few calls; 0 where it has no log that this works with,
/// which changes nothing. To be called where the log is synced at every commit: other connections may read a transaction
/// that was not synced before it is written.
int deferd_gather_log(struct sqlite3 *database);

enum deferd_page {
    /// Its bytes are what was written.
    deferd_page_right,
    /// It has no checksum: nothing was written there, or by a program that knows none.
    deferd_page_unchecked,
    deferd_page_wrong
};

/// What the checksum of a page tells that was read from `offset` of a database's file.
enum deferd_page deferd_look_at_page(const void *page, int size, long long offset);

/// Says whether a page without anything in it may be read, as from a file that is longer than its database.
void deferd_allow_empty_pages(struct sqlite3 *database, int allows);

#endif
