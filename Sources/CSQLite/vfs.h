#ifndef DEFERD_SQLITE_VFS_H
#define DEFERD_SQLITE_VFS_H

#include <sqlite3.h>

/// What is known of an open file, in the room behind SQLite's own object of it.
void *deferd_behind(sqlite3_file *file);

/// The room that is needed for the file of a database (checks.c), and what gives that file other methods.
int deferd_room_for_checks(void);
/// SQLite reads one that is immutable without locks and without the index of a log.
void deferd_open_checked(sqlite3_file *file, int is_immutable);

/// The same for its log (log.c).
int deferd_room_for_log(void);
void deferd_open_log(sqlite3_file *file);

#endif
