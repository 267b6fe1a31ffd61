#include "settings.h"
#include "vfs.h"

#include <stdlib.h>
#include <string.h>

// SQLite writes a page into its log with two calls, one of them for 24 bytes: 42 calls for a group of 65 jobs. Here what
// continues the bytes before it is gathered, and written with one call before the log is synced.
//
// Nobody sees the difference: other connections read a page of the log once its transaction is published, which SQLite
// does after the sync; and whatever else this connection does with the file has the gathered bytes written first.

/// The most that SQLite's own VFS can write with one call: it cuts lengths to 17 bits, so of 128 KiB it writes nothing, and
/// says that the disk is full.
enum { capacity = (128 << 10) - 1 };

struct log {
    const sqlite3_io_methods *original;
    sqlite3_io_methods replaced;
    /// NULL where each write is passed on at once.
    unsigned char *gathered;
    int count;
    /// Where in the file the gathered bytes belong.
    sqlite3_int64 offset;
};

static struct log *log_of(sqlite3_file *file) { return deferd_behind(file); }

/// Writes what was gathered. Where that fails it is given up, like any write that failed: the transaction is undone.
static int write_gathered(sqlite3_file *file) {
    struct log *log = log_of(file);
    int count = log->count;
    log->count = 0;
    return count == 0 ? SQLITE_OK : log->original->xWrite(file, log->gathered, count, log->offset);
}

static int gather(sqlite3_file *file, const void *bytes, int amount, sqlite3_int64 offset) {
    struct log *log = log_of(file);
    if (log->count > 0 && (offset != log->offset + log->count || amount > capacity - log->count)) {
        int code = write_gathered(file);
        if (code != SQLITE_OK) return code;
    }
    if (log->gathered == NULL || amount > capacity) return log->original->xWrite(file, bytes, amount, offset);
    if (log->count == 0) log->offset = offset;
    memcpy(log->gathered + log->count, bytes, amount);
    log->count += amount;
    return SQLITE_OK;
}

static int read_log(sqlite3_file *file, void *buffer, int amount, sqlite3_int64 offset) {
    int code = write_gathered(file);
    return code != SQLITE_OK ? code : log_of(file)->original->xRead(file, buffer, amount, offset);
}

static int sync_log(sqlite3_file *file, int flags) {
    int code = write_gathered(file);
    return code != SQLITE_OK ? code : log_of(file)->original->xSync(file, flags);
}

static int truncate_log(sqlite3_file *file, sqlite3_int64 size) {
    int code = write_gathered(file);
    return code != SQLITE_OK ? code : log_of(file)->original->xTruncate(file, size);
}

static int measure_log(sqlite3_file *file, sqlite3_int64 *size) {
    int code = write_gathered(file);
    return code != SQLITE_OK ? code : log_of(file)->original->xFileSize(file, size);
}

static int close_log(sqlite3_file *file) {
    struct log *log = log_of(file);
    // Only of a transaction that was undone, so that no error matters.
    write_gathered(file);
    free(log->gathered);
    log->gathered = NULL;
    return log->original->xClose(file);
}

int deferd_room_for_log(void) { return sizeof(struct log); }

void deferd_open_log(sqlite3_file *file) {
    struct log *log = log_of(file);
    memset(log, 0, sizeof *log);
    log->original = file->pMethods;
    log->replaced = *file->pMethods;
    log->replaced.xWrite = gather;
    log->replaced.xRead = read_log;
    log->replaced.xSync = sync_log;
    log->replaced.xTruncate = truncate_log;
    log->replaced.xFileSize = measure_log;
    log->replaced.xClose = close_log;
    file->pMethods = &log->replaced;
}

int deferd_gather_log(sqlite3 *database) {
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) != SQLITE_OK) return 0;
    if (file == NULL || file->pMethods == NULL || file->pMethods->xWrite != gather) return 0;
    struct log *log = log_of(file);
    if (log->gathered == NULL) log->gathered = malloc(capacity);
    return log->gathered != NULL;
}
