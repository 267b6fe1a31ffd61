import CLinux
import DeferredKit
import Glibc
import JobModel
import LoopTasks
import NIOCore
import Synchronization
import SystemPackage

/// The process that starts programs, and that survives the daemon to end them: `deferd-guard`.
final class ProgramGuard: Sendable {
    private let socket: Int32
    private let loop: any EventLoop
    private let runs = Mutex<[UInt64: ProgramRun]>([:])

    private init(socket: Int32, loop: any EventLoop) { (self.socket, self.loop) = (socket, loop) }

    deinit { close(socket) }

    /// Starts the guard `program`, which takes over `lock`; `ended` is called when it has ended.
    static func start(
        _ program: String, lock: Int32, on executor: LoopExecutor, queue: FileQueue,
        ended: @escaping @Sendable () -> Void
    ) async throws(JobError) -> ProgramGuard {
        let started: (connection: ProgramGuard, reports: Int32, process: pid_t)
        do throws(Errno) {
            started = try await queue.run { () throws(Errno) in try start(program, lock, executor.loop) }
        } catch {
            throw JobError(
                .internal,
                "The program guard \(program) could not be started: \(error); check that it is there and may be executed.",
                retryable: error != .noSuchFileOrDirectory)
        }
        let reader = await PipeReader.open([started.reports], on: executor.loop)
        // The task ends with the guard.
        Task(executorPreference: executor) {
            var pending = ByteBuffer()
            while let chunks = await reader.next() {
                for chunk in chunks { pending.writeImmutableBuffer(chunk.bytes) }
                started.connection.receive(&pending)
            }
            reap(started.process, on: executor.loop)
            ended()
            started.connection.endRuns()
        }
        return started.connection
    }

    /// Blocks until the guard runs.
    private static func start(
        _ program: String, _ lock: Int32, _ loop: any EventLoop
    ) throws(Errno) -> (connection: ProgramGuard, reports: Int32, process: pid_t) {
        defer { close(lock) }
        var sockets: [Int32] = [-1, -1]
        _ = try FileOperations.call {
            socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &sockets)
        }
        let connection = ProgramGuard(socket: sockets[0], loop: loop)
        defer { close(sockets[1]) }
        // A stopped guard must not block file threads for ever.
        var patience = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var pipe: [Int32] = [-1, -1]
        _ = try FileOperations.call { deferd_pipe(&pipe) }
        defer { close(pipe[1]) }
        var streams = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&streams)
        defer { posix_spawn_file_actions_destroy(&streams) }
        for (target, descriptor) in [sockets[1], pipe[1], lock].enumerated() {
            posix_spawn_file_actions_adddup2(&streams, descriptor, Int32(target))
        }
        let arguments = [strdup(program), strdup(String(ProgramRun.grace.nanoseconds / 1_000_000)), nil]
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        let error = posix_spawn(&process, program, &streams, nil, arguments, [nil])
        guard error == 0 else {
            close(pipe[0])
            throw Errno(rawValue: error)
        }
        return (connection, pipe[0], process)
    }

    /// Reaps a guard that has closed its reports and is about to exit.
    private static func reap(_ process: pid_t, on loop: any EventLoop) {
        guard waitpid(process, nil, WNOHANG) == 0 else { return }
        loop.scheduleTask(in: .milliseconds(10)) { reap(process, on: loop) }
    }

    /// Starts a program, in a new directory if `ownDirectory` is given; returns the ends of its pipes from which to
    /// read. Blocks while the guard is busy, but not for the program.
    ///
    /// Its input is a file, so that no thread waits for a program that does not read.
    func start(
        _ run: ProgramRun, _ command: ProgramCommand, in ownDirectory: String?, input bytes: [UInt8]?,
        inputFile: Int32?
    ) throws(Errno) -> (output: Int32, errors: Int32) {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        func memoryFile(_ bytes: [UInt8]) throws(Errno) -> Int32 {
            let file = try FileOperations.call { deferd_memory_file("deferd") }
            opened.append(file)
            try FileOperations.real.write(bytes, to: file)
            return file
        }
        func pipe() throws(Errno) -> (read: Int32, write: Int32) {
            var ends: [Int32] = [-1, -1]
            _ = try FileOperations.call { deferd_pipe(&ends) }
            opened += ends
            return (ends[0], ends[1])
        }
        let block = command.block(in: ownDirectory ?? command.directory ?? "")
        let blockFile = try memoryFile(block)
        let inputFile = if let bytes { try memoryFile(bytes) } else { inputFile }
        // Opened anew, so that the program can only read it, from its beginning.
        let input = try FileOperations.call {
            open(inputFile.map { "/proc/self/fd/\($0)" } ?? "/dev/null", O_RDONLY | O_CLOEXEC)
        }
        opened.append(input)
        let (output, errors) = (try pipe(), try pipe())
        if let ownDirectory { _ = try FileOperations.call { mkdir(ownDirectory, 0o700) } }
        var request = deferd_guard_request(
            kind: DEFERD_GUARD_START.rawValue, signal: 0, id: run.id, size: UInt64(block.count))
        let descriptors = [blockFile, input, output.write, errors.write]
        runs.withLock { $0[run.id] = run }
        do throws(Errno) {
            _ = try FileOperations.call { deferd_guard_send(socket, &request, descriptors, 0) }
        } catch {
            forget(run)
            if let ownDirectory { rmdir(ownDirectory) }
            throw error
        }
        // The guard has its own descriptors.
        opened.removeAll { $0 == output.read || $0 == errors.read }
        return (output.read, errors.read)
    }

    private func forget(_ run: ProgramRun) { runs.withLock { $0[run.id] = nil } }

    /// Sends a signal to a program's group, again if the guard is busy.
    func send(_ signal: Int32, to id: UInt64) {
        guard runs.withLock({ $0[id] != nil }) else { return }
        var request = deferd_guard_request(kind: DEFERD_GUARD_SIGNAL.rawValue, signal: signal, id: id, size: 0)
        guard deferd_guard_send(socket, &request, nil, Int32(MSG_DONTWAIT)) != 0, errno == EAGAIN else { return }
        loop.scheduleTask(in: .milliseconds(50)) { self.send(signal, to: id) }
    }

    /// Kills a program's group. The run ends after ``ProgramRun/grace`` even if a process remains: one that waits in the kernel
    /// for a file system, or one that runs as another user.
    func endGroup(of run: ProgramRun) {
        send(SIGKILL, to: run.id)
        // The kernel's work takes real time, whatever clock the timeouts have.
        loop.scheduleTask(in: ProgramRun.grace) { run.end(with: .signalled(Int(SIGKILL))) }
    }

    // MARK: - Reports

    var hasRuns: Bool { runs.withLock { !$0.isEmpty } }

    private func receive(_ bytes: inout ByteBuffer) {
        while let report = bytes.readBytes(length: MemoryLayout<deferd_guard_report>.size) {
            receive(report.withUnsafeBytes { $0.loadUnaligned(as: deferd_guard_report.self) })
        }
        bytes.discardReadBytes()
    }

    private func receive(_ report: deferd_guard_report) {
        guard let run = runs.withLock({ $0[report.id] }) else { return }
        let kind = deferd_guard_report_kind(rawValue: report.kind)
        switch kind {
        case DEFERD_GUARD_STARTED: run.process.withLock { $0 = report.value }
        case DEFERD_GUARD_REFUSED, DEFERD_GUARD_NO_DIRECTORY:
            run.ending.succeed(.refused(report.value, isDirectory: kind == DEFERD_GUARD_NO_DIRECTORY))
        case DEFERD_GUARD_EXITED: run.ending.succeed(.exited(Int(report.value)))
        case DEFERD_GUARD_SIGNALLED: run.ending.succeed(.signalled(Int(report.value)))
        case DEFERD_GUARD_ENDED:
            forget(run)
            run.end.succeed(())
        default: break
        }
    }

    private func endRuns() {
        for run in runs.withLock({ exchange(&$0, with: [:]) }).values {
            // The program was killed with the guard, but not the rest of its group.
            if let process = run.process.withLock(\.self) { kill(-process, SIGKILL) }
            run.end(with: .lost)
        }
    }

    /// Closes the connection, so that the guard ends all programs and itself.
    func end() { shutdown(socket, Int32(SHUT_RDWR)) }
}
