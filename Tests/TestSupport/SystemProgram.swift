import Foundation
import Glibc

/// Runs a program to its end and captures its output.
///
/// Tests do not use Foundation's `Process`: in a process with some 1,350 open descriptors, as in tests with many
/// connections, it reads past the end of a buffer when it starts a program.
package struct SystemProgram: Sendable {
    /// The exit status; negative is the signal that ended it.
    package let status: Int32
    /// The captured standard output, unless it was redirected.
    package let output: [UInt8]
    package let errors: [UInt8]

    package var outputText: String { String(decoding: output, as: UTF8.self) }
    package var errorText: String { String(decoding: errors, as: UTF8.self) }

    /// Runs the program at `arguments[0]` with no signal blocked and waits for its end, which blocks.
    ///
    /// - Parameters:
    ///   - environment: in addition to that of this process.
    ///   - input: its standard input; without one it gets the end at once.
    ///   - output: its standard output; without one it is read.
    package init(
        _ arguments: [String], environment: [String: String] = [:], input: Int32? = nil, output: Int32? = nil
    ) throws {
        // Files accept all output, in any order.
        let files = try [Self.file(), Self.file()]
        defer { for file in files { close(file) } }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, output ?? files[0], 1)
        posix_spawn_file_actions_adddup2(&actions, files[1], 2)
        // A server that it leaves behind must not keep the sockets of tests that run beside this one. Closed numbers do no harm.
        for descriptor in Int32(3)..<1024 { posix_spawn_file_actions_addclose(&actions, descriptor) }
        // Dispatch's threads block signals, and the program would inherit that.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (blocked, defaults) = (sigset_t(), sigset_t())
        sigemptyset(&blocked)
        sigfillset(&defaults)
        posix_spawnattr_setsigmask(&attributes, &blocked)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let (argv, envp) = (
            arguments.map { strdup($0) } + [nil], variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        )
        defer { for text in argv + envp { free(text) } }
        var process = pid_t()
        let failure = posix_spawn(&process, arguments[0], &actions, &attributes, argv, envp)
        guard failure == 0 else { throw SystemCallError(failure) }
        var end: Int32 = 0
        while waitpid(process, &end, 0) < 0, errno == EINTR {}
        status = end & 0x7f == 0 ? end >> 8 & 0xff : -(end & 0x7f)
        self.output = try Self.contents(of: files[0])
        errors = try Self.contents(of: files[1])
    }

    /// A file without a name.
    private static func file() throws -> Int32 {
        var path = Array("/tmp/deferd-output.XXXXXX".utf8CString)
        let file = mkstemp(&path)
        guard file >= 0 else { throw SystemCallError(errno) }
        unlink(path)
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        return file
    }

    private static func contents(of file: Int32) throws -> [UInt8] {
        var status = stat()
        guard fstat(file, &status) == 0 else { throw SystemCallError(errno) }
        return [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, count in
            count = max(0, pread(file, buffer.baseAddress, buffer.count, 0))
        }
    }
}
