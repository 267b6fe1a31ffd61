import CLinux
import Glibc
import JobModel
import NIOCore
import NIOPosix
import Subprocess
import SystemPackage

/// Two modules have a type of this name.
private typealias FileDescriptor = SystemPackage.FileDescriptor

/// The process that starts programs and outlives the daemon for as long as it takes to end them: `CLinux/guard.c`, which says
/// why it is one.
///
/// It is started with swift-subprocess. Programs themselves are not: on Linux that has no way to run anything in the child
/// before the program, so a program would run before anybody could be told of it, and would be left where the daemon is
/// killed just then; it has no umask; and it makes one error of EACCES, ENOENT and ENOTDIR.
final class ProgramGuard: Sendable {
    /// Where requests go.
    private let socket: Int32

    private init(socket: Int32) {
        self.socket = socket
    }

    deinit { close(socket) }

    /// What the guard tells of a program.
    struct Report: Sendable {
        let kind: deferd_guard_report_kind
        let value: Int32
        let id: UInt64
    }

    /// Starts a guard, which keeps `lock` open. `received` is called with each group of reports, and `ended` once there will
    /// be no more.
    static func start(
        lock: Int32, on loop: any EventLoop, executor: any TaskExecutor,
        received: @escaping @Sendable ([Report]) -> Void, ended: @escaping @Sendable () -> Void
    ) async throws -> ProgramGuard {
        let lock = FileDescriptor(rawValue: lock)
        var sockets: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &sockets) == 0
        else {
            let error = Errno(rawValue: errno)
            try? lock.close()
            throw error
        }
        let connection = ProgramGuard(socket: sockets[0])
        // A guard that is stopped must not hold the threads for files for ever.
        var patience = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let requests = FileDescriptor(rawValue: sockets[1])
        var pipe: [Int32] = [-1, -1]
        guard deferd_pipe(&pipe) == 0 else {
            let error = Errno(rawValue: errno)
            try? lock.close()
            try? requests.close()
            throw error
        }
        let (output, reports) = (pipe[0], FileDescriptor(rawValue: pipe[1]))
        do {
            _ = try await NIOPipeBootstrap(group: loop).channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ReportReader(received: received, ended: ended))
                }
            }.takingOwnershipOfDescriptor(input: output).get()
        } catch {
            for descriptor in [lock, requests, reports, FileDescriptor(rawValue: output)] { try? descriptor.close() }
            throw error
        }
        let begun = Delivery<Result<Void, any Error>>()
        // It ends with the guard, and so after the connection is closed.
        Task(executorPreference: executor) {
            do {
                _ = try await run(requests: requests, reports: reports, lock: lock) { begun.deliver(.success(())) }
            } catch {
                begun.deliver(.failure(error))
            }
        }
        try await begun.value().get()
        return connection
    }

    /// Starts a guard that nobody has, which ends at once. With the first process swift-subprocess starts threads that it
    /// never tries to start again: without one what is started later waits for ever, and without another it waits for the
    /// guard's end where it is, on an event loop.
    static func makeThreads() async {
        var sockets: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &sockets) == 0
        else { return }
        close(sockets[0])
        let requests = FileDescriptor(rawValue: sockets[1])
        let none = FilePath("/dev/null")
        let reports = try? FileDescriptor.open(none, .readWrite, options: .closeOnExec)
        let lock = try? FileDescriptor.open(none, .readWrite, options: .closeOnExec)
        guard let reports, let lock else {
            for opened in [requests, reports, lock] { try? opened?.close() }
            return
        }
        // Where it fails the first program says so.
        _ = try? await run(requests: requests, reports: reports, lock: lock) {}
    }

    private static func run(
        requests: FileDescriptor, reports: FileDescriptor, lock: FileDescriptor, _ begun: @escaping @Sendable () -> Void
    ) async throws -> TerminationStatus {
        // A session of its own, so that what a terminal sends the daemon does not end the guard as well.
        var options = PlatformOptions()
        options.createSession = true
        return try await Subprocess.run(
            .path("/proc/self/exe"),
            arguments: Arguments(
                executablePathOverride: DEFERD_GUARD_NAME,
                remainingValues: [String(ProgramRun.grace.nanoseconds / 1_000_000)]),
            workingDirectory: "/", platformOptions: options,
            input: .fileDescriptor(requests, closeAfterSpawningProcess: true),
            output: .fileDescriptor(reports, closeAfterSpawningProcess: true),
            error: .fileDescriptor(lock, closeAfterSpawningProcess: true)
        ) { _ in begun() }.terminationStatus
    }

    /// Has the program start that `block` describes. Blocks while the guard has much to do.
    func start(_ id: UInt64, block: Int32, size: Int, streams: [Int32]) throws(Errno) {
        var request = deferd_guard_request(
            kind: DEFERD_GUARD_START.rawValue, signal: 0, id: id, size: UInt64(size))
        let descriptors = [block] + streams
        guard deferd_guard_send(socket, &request, descriptors, descriptors.count, 0) == 0 else {
            throw Errno(rawValue: errno)
        }
    }

    /// Sends a signal to the group of a program; false where the guard has too much to do just now.
    func send(_ signal: Int32, to id: UInt64) -> Bool {
        var request = deferd_guard_request(kind: DEFERD_GUARD_SIGNAL.rawValue, signal: signal, id: id, size: 0)
        return deferd_guard_send(socket, &request, nil, 0, Int32(MSG_DONTWAIT)) == 0 || errno != EAGAIN
    }
}

/// Cuts what the guard writes into its reports.
private final class ReportReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private static let size = MemoryLayout<deferd_guard_report>.size
    private let received: @Sendable ([ProgramGuard.Report]) -> Void
    private let ended: @Sendable () -> Void
    private var pending = ByteBuffer()

    init(received: @escaping @Sendable ([ProgramGuard.Report]) -> Void, ended: @escaping @Sendable () -> Void) {
        self.received = received
        self.ended = ended
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        pending.writeImmutableBuffer(unwrapInboundIn(data))
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        var reports: [ProgramGuard.Report] = []
        while let bytes = pending.readBytes(length: Self.size) {
            let report = bytes.withUnsafeBytes { $0.loadUnaligned(as: deferd_guard_report.self) }
            reports.append(
                ProgramGuard.Report(
                    kind: deferd_guard_report_kind(rawValue: report.kind), value: report.value, id: report.id))
        }
        pending.discardReadBytes()
        if !reports.isEmpty { received(reports) }
    }

    func channelInactive(context: ChannelHandlerContext) { ended() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
