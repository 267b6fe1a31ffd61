#include "settings.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

// Bytes that are written at once; a commit of one job takes 30 KiB. SQLite takes at most 131,071 in one piece, and writes
// at most a page.
enum { room = 120 << 10 };

/// The methods of a log's file, and what of it is not written yet.
typedef struct {
    // First, as the file points to it.
    sqlite3_io_methods methods;
    const sqlite3_io_methods *original;
    sqlite3_int64 start;
    int count;
    char bytes[room];
} buffer;

static buffer *of(sqlite3_file *file) { return (buffer *)file->pMethods; }

static int flush(sqlite3_file *file) {
    buffer *waiting = of(file);
    int count = waiting->count;
    // What fails is rolled back, and must not be written later.
    waiting->count = 0;
    return count == 0 ? SQLITE_OK : waiting->original->xWrite(file, waiting->bytes, count, waiting->start);
}

static int write_log(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    buffer *waiting = of(file);
    if (waiting->count > 0 && (offset != waiting->start + waiting->count || count > room - waiting->count)) {
        int failure = flush(file);
        if (failure != SQLITE_OK) return failure;
    }
    if (waiting->count == 0) waiting->start = offset;
    memcpy(waiting->bytes + waiting->count, bytes, count);
    waiting->count += count;
    return SQLITE_OK;
}

// SQLite writes to the log in a commit only, which ends with a sync: nothing waits when it reads or measures the log.
static int sync_log(sqlite3_file *file, int flags) {
    int failure = flush(file);
    return failure == SQLITE_OK ? of(file)->original->xSync(file, flags) : failure;
}

static int close_log(sqlite3_file *file) {
    buffer *waiting = of(file);
    file->pMethods = waiting->original;
    free(waiting);
    return file->pMethods->xClose(file);
}

int deferd_gather_log(sqlite3 *database) {
    const char *tuning = getenv("DEFERD_TUNING");
    if (tuning != NULL && strcmp(tuning, "off") == 0) return SQLITE_OK;
    sqlite3_file *file = NULL;
    int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    if (code != SQLITE_OK || file == NULL || file->pMethods == NULL) return code == SQLITE_OK ? SQLITE_ERROR : code;
    buffer *waiting = malloc(sizeof *waiting);
    if (waiting == NULL) return SQLITE_NOMEM;
    waiting->original = file->pMethods;
    waiting->methods = *file->pMethods;
    waiting->methods.xWrite = write_log;
    waiting->methods.xSync = sync_log;
    waiting->methods.xClose = close_log;
    waiting->count = 0;
    file->pMethods = &waiting->methods;
    return SQLITE_OK;
}
