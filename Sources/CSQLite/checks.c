#include "settings.h"
#include "vfs.h"

#include <stdint.h>
#include <string.h>

enum { check_size = 8, header_size = 100, reserved_offset = 20, largest_page = 65536 };

struct known {
    const sqlite3_io_methods *original;
    sqlite3_io_methods replaced;
    /// Whether the file's pages have checksums. What its first page says is believed when it says so, and not when it
    /// no longer does: then that page is damaged.
    int has_checks;
    /// Whether a page may have nothing in it.
    int allows_empty;
};

static struct known *known(sqlite3_file *file) { return deferd_behind(file); }

static int is_page(int amount, sqlite3_int64 offset) {
    return amount >= 512 && amount <= largest_page && (amount & (amount - 1)) == 0 && offset % amount == 0;
}

static int is_zero(const unsigned char *bytes, int size) {
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/// A step gives another sum for each other word, so that a page of which one word changed has another checksum for sure.
static inline uint64_t add(uint64_t sum, const unsigned char *word) {
    uint64_t value;
    memcpy(&value, word, sizeof value);
    sum = (sum ^ value) * 0x9E3779B97F4A7C15u;
    return sum ^ (sum >> 29);
}

/// Four sums side by side, as each step has to wait for the one before it: 0.25 µs a page. When 20,000 jobs are submitted,
/// one page is written for 17 of them, which is 0.4 % of the daemon's instructions.
static uint64_t sum(const unsigned char *page, int size, sqlite3_int64 offset) {
    // A page that stands somewhere else has another one.
    uint64_t sums[4] = {(uint64_t)offset + 1, 2, 3, 4};
    uint64_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    const unsigned char *last = page + size - 32;
    for (; page < last; page += 32) {
        a = add(a, page);
        b = add(b, page + 8);
        c = add(c, page + 16);
        d = add(d, page + 24);
    }
    // The last word is where the checksum stands.
    sums[0] = add(a, last);
    sums[1] = add(b, last + 8);
    sums[2] = add(c, last + 16);
    sums[3] = d;
    uint64_t all = 0;
    for (int index = 0; index < 4; index++) {
        all = (all ^ sums[index]) * 0x9E3779B97F4A7C15u;
        all ^= all >> 32;
    }
    // 0 stands for a page without one.
    return all == 0 ? 1 : all;
}

static uint64_t checksum(const unsigned char *page, int size, sqlite3_int64 offset) {
    if (offset != 0) return sum(page, size, offset);
    // SQLite counts changes in its header whoever makes a copy of a database; copies have the checksums of their original.
    unsigned char first[largest_page];
    memcpy(first, page, size);
    memset(first + 24, 0, 4);
    memset(first + 40, 0, 4);
    memset(first + 92, 0, 8);
    return sum(first, size, offset);
}

/// Looks whether the first page says that there are checksums, where that is not known.
static int has_checks(struct known *state, const unsigned char *page, int amount, sqlite3_int64 offset) {
    if (!state->has_checks && offset == 0 && amount >= header_size) {
        state->has_checks = memcmp(page, "SQLite format 3", 16) == 0 && page[reserved_offset] == check_size;
    }
    return state->has_checks && is_page(amount, offset);
}

enum deferd_page deferd_look_at_page(const void *bytes, int size, long long offset) {
    const unsigned char *page = bytes;
    uint64_t value;
    memcpy(&value, page + size - check_size, check_size);
    if (value == 0) return deferd_page_unchecked;
    return value == checksum(page, size, offset) ? deferd_page_right : deferd_page_wrong;
}

static int read_checked(sqlite3_file *file, void *buffer, int amount, sqlite3_int64 offset) {
    struct known *state = known(file);
    int code = state->original->xRead(file, buffer, amount, offset);
    if (code != SQLITE_OK || !has_checks(state, buffer, amount, offset)) return code;
    switch (deferd_look_at_page(buffer, amount, offset)) {
    case deferd_page_right: break;
    case deferd_page_wrong: return SQLITE_CORRUPT;
    // What a program wrote that knows no checksums, as when it took up the log of a daemon that was killed. No page that
    // SQLite uses has nothing in it.
    case deferd_page_unchecked: return is_zero(buffer, amount) && !state->allows_empty ? SQLITE_CORRUPT : code;
    }
    // Such a program should not keep the checksum of what was there before.
    memset((unsigned char *)buffer + amount - check_size, 0, check_size);
    return code;
}

static int write_checked(sqlite3_file *file, const void *buffer, int amount, sqlite3_int64 offset) {
    struct known *state = known(file);
    if (!has_checks(state, buffer, amount, offset)) return state->original->xWrite(file, buffer, amount, offset);
    unsigned char page[largest_page];
    memcpy(page, buffer, amount);
    uint64_t value = checksum(page, amount, offset);
    memcpy(page + amount - check_size, &value, check_size);
    return state->original->xWrite(file, page, amount, offset);
}

int deferd_room_for_checks(void) { return sizeof(struct known); }

static int immutable_characteristics(sqlite3_file *file) {
    return known(file)->original->xDeviceCharacteristics(file) | SQLITE_IOCAP_IMMUTABLE;
}

void deferd_open_checked(sqlite3_file *file, int is_immutable) {
    struct known *state = known(file);
    memset(state, 0, sizeof *state);
    state->original = file->pMethods;
    state->replaced = *file->pMethods;
    // The second version cannot map files, whose bytes would pass by unread.
    if (state->replaced.iVersion > 2) state->replaced.iVersion = 2;
    state->replaced.xRead = read_checked;
    state->replaced.xWrite = write_checked;
    if (is_immutable) state->replaced.xDeviceCharacteristics = immutable_characteristics;
    file->pMethods = &state->replaced;
}

static struct known *known_of(sqlite3 *database) {
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK) return NULL;
    if (file == NULL || file->pMethods == NULL || file->pMethods->xRead != read_checked) return NULL;
    return known(file);
}

int deferd_has_checks(sqlite3 *database) {
    struct known *state = known_of(database);
    return state != NULL && state->has_checks;
}

int deferd_expect_checks(sqlite3 *database) {
    struct known *state = known_of(database);
    if (state != NULL) state->has_checks = 1;
    return state != NULL;
}

void deferd_allow_empty_pages(sqlite3 *database, int allows) {
    struct known *state = known_of(database);
    if (state != NULL) state->allows_empty = allows;
}
