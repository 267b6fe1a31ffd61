#ifndef DEFERD_SQLITE_SETTINGS_H
#define DEFERD_SQLITE_SETTINGS_H

#include <sqlite3.h>

/// Sets what SQLite lets only C set, as the function takes any number of arguments: memory is not counted, which takes a
/// lock at every allocation, and a name that begins with "file:" is a URI. To be called before SQLite is used; afterwards
/// it does nothing.
void deferd_settle_database(void);

/// Has the log of a connection that has read it written in few pieces: all that comes before a sync with one system call,
/// where SQLite makes two for each page. With DEFERD_TUNING=off it does nothing. Returns SQLITE_OK or the reason why not.
int deferd_gather_log(sqlite3 *database);

#endif
