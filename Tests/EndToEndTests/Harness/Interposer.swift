import Foundation
import Glibc
import TestSupport
import Testing

/// A library for LD_PRELOAD that is compiled for a test: the daemon is the real one, and what the system would answer is
/// changed where nothing else could change it for one process alone.
struct Interposer {
    /// Why there is none here, or nil.
    static let obstacle = Files.exists("/usr/bin/cc") ? nil : "there is no C compiler"

    let path: String

    init(_ source: String, in directory: TemporaryDirectory) async throws {
        path = directory.path + "/interposer.so"
        let file = try directory.write("#define _GNU_SOURCE\n" + source, to: "interposer.c")
        let (end, _, errors) = try await ChildProcess.run(["/usr/bin/cc", "-shared", "-fPIC", "-o", path, file, "-ldl"])
        try #require(end == .code(0), "\(errors)")
        try #require(chmod(path, 0o755) == 0)
    }
}

extension Interposer {
    /// The process is killed before it gives the file away whose number is $KILL_AT.
    static let killAtChown = """
        #include <signal.h>
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static long left;
        __attribute__((constructor)) static void begin(void) { const char *at = getenv("KILL_AT"); left = at ? atol(at) : 0; }
        int fchown(int file, uid_t user, gid_t group) {
            if (left > 0 && --left == 0) kill(getpid(), SIGKILL);
            return syscall(SYS_fchown, file, user, group);
        }
        """
}
