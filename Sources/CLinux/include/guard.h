#pragma once
#include <stdint.h>

// The protocol between the daemon and the program guard (`deferd-guard`). The guard starts programs, and ends them all if
// the daemon dies for any reason.
//
// The guard's standard input is a socket of whole messages (SOCK_SEQPACKET) for the requests. Its standard output is a pipe
// for the reports. Its standard error is only kept open: a lock on it lasts until the last program has ended. Its argument is
// the number of milliseconds between SIGTERM and SIGKILL after the daemon has died.

/// The kinds of requests.
enum deferd_guard_request_kind {
    /// Start a program. Four descriptors come with the request: a file with the program's `deferd_guard_block`, and the
    /// program's standard input, output and error.
    DEFERD_GUARD_START = 1,
    /// Send `signal` to the program's process group.
    DEFERD_GUARD_SIGNAL = 2,
};

/// The number of descriptors with a request to start a program.
enum { DEFERD_GUARD_DESCRIPTORS = 4 };

struct deferd_guard_request {
    uint32_t kind;
    int32_t signal;
    /// Chosen by the daemon, and never used again.
    uint64_t id;
    /// The size of the block in bytes.
    uint64_t size;
};

/// The beginning of a block. It is followed by the directory, the arguments (of which the first is the program's path) and
/// the variables, each terminated by a NUL.
struct deferd_guard_block {
    uint32_t arguments;
    uint32_t variables;
    uint32_t umask;
};

/// The kinds of reports.
enum deferd_guard_report_kind {
    /// There is a process that enters the directory and runs the program; `value` is the id of the process and of its group.
    DEFERD_GUARD_STARTED = 1,
    /// The program could not be started: `value` is errno. Without a process, this is the first report.
    DEFERD_GUARD_REFUSED = 2,
    /// The same, because the directory could not be entered.
    DEFERD_GUARD_NO_DIRECTORY = 3,
    /// The program exited with the status `value`; other processes of its group may remain.
    DEFERD_GUARD_EXITED = 4,
    /// The signal `value` ended the program; other processes of its group may remain.
    DEFERD_GUARD_SIGNALLED = 5,
    /// The last process of the group has ended, or there was none. This is the last report.
    DEFERD_GUARD_ENDED = 6,
};

struct deferd_guard_report {
    uint32_t kind;
    int32_t value;
    uint64_t id;
};

/// Sends a request with its descriptors, or NULL. Returns 0, or -1 with errno set. Swift cannot make the control message.
/// `flags` are those of send(2).
int deferd_guard_send(
    int socket, const struct deferd_guard_request *request, const int *descriptors, int flags);

/// An empty file in memory: memfd_create(2), which glibc declares for GNU sources only.
int deferd_memory_file(const char *name);

/// A pipe that programs do not inherit: pipe2(2) with O_CLOEXEC, which glibc declares for GNU sources only.
int deferd_pipe(int ends[2]);

/// Locks an open file; processes that inherit the descriptor share the lock: flock(2) with LOCK_EX and LOCK_NB. Swift's
/// importer gives that name to a struct. Returns 0, or -1 with errno set.
int deferd_try_lock(int file);
