import CLinux
import Glibc
import JobModel
import LoopTasks
import NIOCore
import SystemPackage

/// The process that starts programs, and that survives the daemon to end them: `deferd-guard`.
final class ProgramGuard: Sendable {
    /// The socket for requests.
    private let socket: Int32

    private init(socket: Int32) {
        self.socket = socket
    }

    deinit { close(socket) }

    /// A message about a program from the guard.
    struct Report: Sendable {
        let kind: deferd_guard_report_kind
        let value: Int32
        let id: UInt64
    }

    /// Starts the guard `program`, which takes over `lock`.
    ///
    /// `received` is called with each group of reports, and `ended` after the last.
    static func start(
        _ program: String, lock: Int32, on executor: LoopExecutor, queue: FileQueue,
        received: @escaping @Sendable ([Report]) -> Void, ended: @escaping @Sendable () -> Void
    ) async throws(JobError) -> ProgramGuard {
        let started: (connection: ProgramGuard, reports: Int32, process: pid_t)
        do throws(Errno) {
            started = try await queue.run { () throws(Errno) in try start(program, lock) }
        } catch {
            throw JobError(
                .internal,
                "The program guard \(program) could not be started: \(error); check that it is there and may be executed.",
                retryable: error != .noSuchFileOrDirectory)
        }
        let reader = await PipeReader.open(started.reports, on: executor.loop)
        // The task ends with the guard.
        Task(executorPreference: executor) {
            var pending = ByteBuffer()
            while let bytes = await reader.next() {
                pending.writeImmutableBuffer(bytes)
                received(reports(in: &pending))
            }
            reap(started.process, on: executor.loop)
            ended()
        }
        return started.connection
    }

    /// Blocks until the guard runs.
    private static func start(
        _ program: String, _ lock: Int32
    ) throws(Errno) -> (connection: ProgramGuard, reports: Int32, process: pid_t) {
        defer { close(lock) }
        var sockets: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &sockets) == 0
        else { throw Errno(rawValue: errno) }
        let connection = ProgramGuard(socket: sockets[0])
        defer { close(sockets[1]) }
        // A stopped guard must not block file threads for ever.
        var patience = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var pipe: [Int32] = [-1, -1]
        guard deferd_pipe(&pipe) == 0 else { throw Errno(rawValue: errno) }
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

    /// Starts the program that `block` describes. Blocks while the guard is busy.
    func start(_ id: UInt64, block: Int32, size: Int, streams: [Int32]) throws(Errno) {
        var request = deferd_guard_request(
            kind: DEFERD_GUARD_START.rawValue, signal: 0, id: id, size: UInt64(size))
        let descriptors = [block] + streams
        guard deferd_guard_send(socket, &request, descriptors, descriptors.count, 0) == 0 else {
            throw Errno(rawValue: errno)
        }
    }

    /// Sends a signal to a program's group; false if the guard is busy.
    func send(_ signal: Int32, to id: UInt64) -> Bool {
        var request = deferd_guard_request(kind: DEFERD_GUARD_SIGNAL.rawValue, signal: signal, id: id, size: 0)
        return deferd_guard_send(socket, &request, nil, 0, Int32(MSG_DONTWAIT)) == 0 || errno != EAGAIN
    }

    /// Removes complete reports from what the guard wrote.
    private static func reports(in bytes: inout ByteBuffer) -> [Report] {
        defer { bytes.discardReadBytes() }
        var reports: [Report] = []
        while let report = bytes.readBytes(length: MemoryLayout<deferd_guard_report>.size) {
            let report = report.withUnsafeBytes { $0.loadUnaligned(as: deferd_guard_report.self) }
            reports.append(
                Report(kind: deferd_guard_report_kind(rawValue: report.kind), value: report.value, id: report.id))
        }
        return reports
    }
}
