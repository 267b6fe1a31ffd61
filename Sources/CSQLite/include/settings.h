#ifndef DEFERD_SQLITE_SETTINGS_H
#define DEFERD_SQLITE_SETTINGS_H

/// Has SQLite not count its memory: it takes a lock for that at every allocation. To be called before SQLite is used;
/// afterwards it does nothing.
void deferd_settle_database(void);

#endif
