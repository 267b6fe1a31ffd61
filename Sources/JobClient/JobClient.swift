import SystemPackage
import Glibc
public import JobModel
import JobProtocol
import NIOCore
import NIOPosix
import Synchronization

/// A connection to a deferd daemon.
///
/// ```swift
/// try await JobClient.withConnection(path: socket) { client in
///     let job = try await client.submit(JobClient.Spec(.url(url)))
///     print(try await client.wait(job.id).state)
/// }
/// ```
///
/// Many tasks can share a connection; their calls do not wait for each other. If the daemon goes away, all waiting and later
/// calls fail with the code `closed`: make a new connection then.
public final class JobClient: Sendable {
    /// The maximum number of bytes of notifications that wait for their reader.
    public static let maximumWaitingBytes = 16 << 20
    /// The maximum length of an answer in bytes.
    public static let maximumAnswerBytes = 64 << 20

    /// The notifications of this connection's watches, for one reader.
    public let notifications: JobEvents

    let channel: any Channel
    private let handler: NIOLoopBound<ConnectionHandler>
    private let nextID = Atomic(1)

    /// One thread serves all connections of a program, because they wait far more than they work.
    private static let eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    private init(_ channel: any Channel, _ handler: NIOLoopBound<ConnectionHandler>, _ events: JobEvents) {
        (self.channel, self.handler, notifications) = (channel, handler, events)
    }

    /// The socket of the daemon that a user means: `DEFERD_SOCKET`, else that of their own daemon if there is one, else the
    /// system's.
    public static var defaultPath: String {
        func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }
        let (path, runtime) = (variable("DEFERD_SOCKET"), variable("XDG_RUNTIME_DIR"))
        if !path.isEmpty { return path }
        let own = runtime + "/deferd/deferd.sock"
        return runtime.first == "/" && access(own, F_OK) == 0 ? own : "/run/deferd/deferd.sock"
    }

    /// Connects to the daemon at the Unix socket `path`. Call ``close()`` at the end.
    public static func connect(path: String = defaultPath) async throws(JobClientError) -> JobClient {
        try check(path: path)
        let events = JobEvents(limit: maximumWaitingBytes)
        var patience = 100
        while true {
            do {
                return try await ClientBootstrap(group: eventLoops).connect(unixDomainSocketPath: path) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let handler = ConnectionHandler(events: events, channel: channel)
                        try channel.pipeline.syncOperations.addHandler(handler)
                        return JobClient(channel, NIOLoopBound(handler, eventLoop: channel.eventLoop), events)
                    }
                }
            } catch let error as IOError where error.errnoCode == EAGAIN && patience > 0 {
                // The daemon's backlog is full; connecting to a Unix socket does not wait by itself.
                patience -= 1
                do { try await Task.sleep(for: .milliseconds(20)) } catch { throw unreachable(path, error) }
            } catch {
                throw unreachable(path, error)
            }
        }
    }

    /// Throws if `path` is too long for a socket.
    package static func check(path: String) throws(JobClientError) {
        // As in `sockaddr_un`.
        let (count, limit) = (path.utf8.count, 107)
        guard count > limit else { return }
        throw JobClientError(
            .unreachable,
            "The path of a socket has at most \(limit) bytes, and \(path) has \(count). Name a shorter one.")
    }

    private static func unreachable(_ path: String, _ error: any Error) -> JobClientError {
        switch (error as? IOError)?.errnoCode {
        case EACCES, EPERM:
            JobClientError(
                .denied, "You may not use the socket \(path); ask its owner for access to it.", underlying: error)
        case let number?:
            JobClientError(
                .unreachable, "No daemon can be reached at \(path) (\(Errno(rawValue: number))); is it running?",
                underlying: error)
        case nil:
            JobClientError(.unreachable, "The daemon cannot be reached at \(path): \(error).", underlying: error)
        }
    }

    /// Connects, runs `body`, and closes the connection.
    public static func withConnection<Value>(
        path: String = defaultPath, isolation: isolated (any Actor)? = #isolation,
        _ body: (JobClient) async throws -> Value
    ) async throws -> Value {
        try await connect(path: path).closing(isolation: isolation, after: body)
    }

    /// Runs `body`, and closes this connection.
    package func closing<Value>(
        isolation: isolated (any Actor)? = #isolation, after body: (JobClient) async throws -> Value
    ) async throws -> Value {
        do {
            let value = try await body(self)
            await close()
            return value
        } catch {
            await close()
            throw error
        }
    }

    /// Calls `method` with `params`, which must be an object, and returns the `result` of the answer.
    ///
    /// A cancelled task stops waiting at once; the daemon may still carry out the call.
    public func call(_ method: String, _ params: JSON = [:]) async throws(JobClientError) -> JSON {
        guard case .object(let members) = params else {
            throw JobClientError(.misuse, "The params of \(method) must be an object, because they are named.")
        }
        let id = nextID.add(1, ordering: .relaxed).oldValue
        let line = Request(id: JSON(id), method: method, params: members).line
        let (handler, eventLoop) = (handler, channel.eventLoop)
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                eventLoop.execute { handler.value.call(id, line: line, waiter: waiter) }
                // An earlier cancellation has reached the event loop before the call.
                if Task.isCancelled { eventLoop.execute { handler.value.abandon(id) } }
            }
        } onCancel: {
            eventLoop.execute { handler.value.abandon(id) }
        }
        return try answer.get()
    }

    /// Closes the connection. Waiting calls fail with the code `closed`; ``notifications`` end.
    public func close() async {
        let handler = handler
        channel.eventLoop.execute { handler.value.end(nil) }
        // It may be closed already.
        try? await channel.closeFuture.get()
    }
}

extension JobClient {
    /// The process that began to listen at the socket (`ucred`); nil if the kernel reports none.
    package var peer: (pid: Int32, uid: UInt32, gid: UInt32)? {
        get async {
            let option = NIOBSDSocket.Option(rawValue: SO_PEERCRED)
            guard let socket = channel as? any SocketOptionProvider else { return nil }
            return try? await socket.unsafeGetSocketOption(level: .socket, name: option).get()
        }
    }
}
