#ifndef DEFERD_GUARD_H
#define DEFERD_GUARD_H
#include <stddef.h>
#include <stdint.h>

// What the daemon and the program guard (`deferd-guard`) say to each other. The guard starts programs, and ends them all
// should the daemon die, however it dies.
//
// Its standard input: a socket of whole messages (SOCK_SEQPACKET), the requests. Its standard output: a pipe, the reports.
// Its standard error is only kept open: a lock on it lasts until the last program has ended. Its argument says after how many
// milliseconds SIGKILL follows SIGTERM once the daemon has died.

/// What the daemon asks for.
enum deferd_guard_request_kind {
    /// Start a program. With it come four descriptors: the program's `deferd_guard_block` in a file, and what becomes its
    /// standard input, output and error.
    DEFERD_GUARD_START = 1,
    /// Send `signal` to the program's process group.
    DEFERD_GUARD_SIGNAL = 2,
};

/// The most descriptors that come with a request.
enum { DEFERD_GUARD_DESCRIPTORS = 4 };

struct deferd_guard_request {
    uint32_t kind;
    int32_t signal;
    /// Of the daemon's choice, and never used again.
    uint64_t id;
    /// Bytes of the block.
    uint64_t size;
};

/// The beginning of a block. Behind it stand, each ended by a NUL, the directory, the path, the arguments (of which the
/// first is the program's name for itself) and the variables.
struct deferd_guard_block {
    uint32_t arguments;
    uint32_t variables;
};

/// What the guard tells.
enum deferd_guard_report_kind {
    /// The program runs; `value` is its process id, and that of its group.
    DEFERD_GUARD_STARTED = 1,
    /// It could not be started: `value` is errno, and nothing follows.
    DEFERD_GUARD_REFUSED = 2,
    /// The same, as the directory could not be entered.
    DEFERD_GUARD_NO_DIRECTORY = 3,
    /// It exited with the status `value`; others of its group may be left.
    DEFERD_GUARD_EXITED = 4,
    /// A signal of the number `value` ended it; others of its group may be left.
    DEFERD_GUARD_SIGNALLED = 5,
    /// The last of its group has ended; nothing follows.
    DEFERD_GUARD_ENDED = 6,
};

struct deferd_guard_report {
    uint32_t kind;
    int32_t value;
    uint64_t id;
};

/// Sends a request, with these descriptors where there are any. Returns 0, or -1 with errno set. Swift has no way to
/// make the control message. `flags` as send(2) has them.
int deferd_guard_send(
    int socket, const struct deferd_guard_request *request, const int *descriptors, size_t count, int flags);

/// An empty file in memory: memfd_create(2), which glibc shows to GNU sources only.
int deferd_memory_file(const char *name);

/// A pipe that no program inherits: pipe2(2) with O_CLOEXEC, which glibc shows to GNU sources only.
int deferd_pipe(int ends[2]);

/// Takes the lock of an open file, which whoever inherits the descriptor shares: flock(2) with LOCK_EX and LOCK_NB, whose
/// name Swift's importer gives to a struct. Returns 0, or -1 with errno set.
int deferd_try_lock(int file);

#endif
