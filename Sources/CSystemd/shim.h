// Without this, sd_journal_sendv is a macro that adds the location of its caller in C, and Swift cannot see it.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
