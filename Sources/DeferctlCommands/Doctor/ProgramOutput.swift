import Glibc

/// Runs a program of the system for what it prints.
enum ProgramOutput {
    /// The most bytes that are read.
    private static let limit = 64 << 10

    /// What `arguments[0]`, looked for in PATH, prints within `seconds`; nil where it cannot be started, takes longer, or
    /// fails. It gets no input, and what it says on standard error is left out.
    static func read(_ arguments: [String], seconds: Int = 3) -> String? {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // Dispatch's threads block signals, which would go on to the program.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let argv = arguments.map { strdup($0) } + [nil]
        defer { for text in argv { free(text) } }
        var pid = pid_t()
        let result = posix_spawnp(&pid, arguments[0], &actions, &attributes, argv, environ)
        close(ends[1])
        guard result == 0 else { return nil }
        let deadline = ContinuousClock.now + .seconds(seconds)
        var bytes: [UInt8] = []
        var isWhole = false
        while bytes.count < limit {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { break }
            var wanted = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
            let ready = poll(&wanted, 1, Int32(left / .milliseconds(1)) + 1)
            if ready < 0, errno != EINTR { break }
            guard ready > 0 else { continue }
            var piece = [UInt8](repeating: 0, count: 4096)
            let count = Glibc.read(ends[0], &piece, piece.count)
            if count > 0 {
                bytes += piece[..<count]
            } else {
                isWhole = count == 0
                break
            }
        }
        if !isWhole { kill(pid, SIGKILL) }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return isWhole && status == 0 ? String(decoding: bytes, as: UTF8.self) : nil
    }
}
