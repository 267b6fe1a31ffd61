#ifndef DEFERD_SQLITE_SETTINGS_H
#define DEFERD_SQLITE_SETTINGS_H

#include <sqlite3.h>

/// Lets SQLite not count memory, which takes a lock at every allocation. Only C can say so, as the function takes any number
/// of arguments. To be called before SQLite is used; afterwards it does nothing.
static inline void deferd_settle_database(void) { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// Has the log of a connection that has read it written in few pieces: all that comes before a sync with one system call,
/// where SQLite makes two for each page. The connection must sync every commit, and spill no page before it. With
/// DEFERD_TUNING=off it does nothing. Returns SQLITE_OK or the reason why not.
int deferd_gather_log(sqlite3 *database);

#endif
