#include <postgresql/libpq-fe.h>

// Loads libpq, of which this module has the functions that deferd uses, and which must not be called before. Only a
// daemon with its jobs in PostgreSQL pays for libpq and the libraries that it needs: 20 ms of a start.
// Returns NULL, or what is missing.
const char *deferd_load_libpq(void);
