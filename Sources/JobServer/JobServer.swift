import Dispatch
import Glibc
import JobCore
package import JobEngine
package import JobModel
import JobProtocol
package import Logging
import NIOCore
package import NIOPosix
import ServiceLifecycle

/// Serves the protocol on a listening socket until a graceful shutdown.
package struct JobServer: Service {
    private let engine: Engine
    private let listener: Listener
    private let group: MultiThreadedEventLoopGroup
    private let logger: Logger
    private let state: ServerState
    /// The room for connections that are accepted and not served yet. It begins at zero and is filled in `init`, because a
    /// semaphore traps if it is destroyed with less than it began with.
    private let arrivals = DispatchSemaphore(value: 0)

    /// The most connections that are accepted and not served yet. Without a limit, clients that connect and disconnect without
    /// a pause fill the queue of an event loop, so that it does not read its sockets.
    private static let mostArrivals = 16

    package init(
        engine: Engine, listener: Listener, group: MultiThreadedEventLoopGroup, version: String, startedAt: Timestamp,
        adminGroup: UInt32?, logger: Logger
    ) {
        self.engine = engine
        self.listener = listener
        self.group = group
        self.logger = logger
        state = ServerState(version: version, startedAt: startedAt, adminGroup: adminGroup)
        for _ in 0..<Self.mostArrivals { arrivals.signal() }
    }

    /// Applies the present settings of the engine and the group of administrators to the next line, call and connection. No
    /// client is disconnected.
    package func configure(adminGroup: UInt32?) {
        state.configure(engine.limits, adminGroup: adminGroup)
        state.refusedConfiguration = nil
    }

    /// Notes why a new configuration was not applied.
    package func refused(configuration reason: String) {
        state.refusedConfiguration = ServerState.RefusedConfiguration(reason: reason, at: engine.wallTime)
    }

    /// Accepts and serves connections; returns after a shutdown, once the last connection is answered.
    package func run() async throws {
        let (clients, stop) = listener.connections(admit)
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { tasks in
                for await client in clients {
                    tasks.addTask { await serve(client) }
                }
            }
        } onGracefulShutdown: {
            stop()
        }
    }

    private struct Client: Sendable {
        let descriptor: Int32
        let peer: Peer
        let budget: UserBudget
    }

    /// Counts a new connection, or tells the client why it is refused. Blocks the listener's thread while there are
    /// ``mostArrivals`` connections.
    private func admit(_ descriptor: Int32) -> Client? {
        guard let peer = Peer(socket: descriptor) else {
            close(descriptor)
            return nil
        }
        do throws(ProtocolError) {
            let budget = try state.enter(peer.uid, within: engine.limits)
            arrivals.wait()
            return Client(descriptor: descriptor, peer: peer, budget: budget)
        } catch {
            let line = Answer.failure(id: .null, error: error) + [UInt8(ascii: "\n")]
            // The socket is new and its buffer empty, so the line fits.
            _ = line.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            close(descriptor)
            state.warn(
                .connectionRefused, "A connection was refused.", of: peer.uid, ["reason": "\(error.message)"],
                to: logger)
            return nil
        }
    }

    private func serve(_ client: Client) async {
        defer { state.leave(client.peer.uid) }
        let connection: Connection
        do {
            defer { arrivals.signal() }
            connection = try await adopt(client)
        } catch {
            return logger.debug("A connection ended.", metadata: ["uid": "\(client.peer.uid)", "error": "\(error)"])
        }
        // Its task runs on the event loop of its socket, so that requests change threads only for the engine.
        await withTaskExecutorPreference(connection.loop) {
            await withGracefulShutdownHandler {
                await connection.run()
            } onGracefulShutdown: {
                connection.stop()
            }
        }
    }

    /// A connection that owns the socket.
    private func adopt(_ client: Client) async throws -> Connection {
        try await ClientBootstrap(group: group)
            .channelOption(.autoRead, value: false)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.maxMessagesPerRead, value: 1)
            .withConnectedSocket(client.descriptor) { [engine, state, logger] channel in
                channel.eventLoop.makeCompletedFuture {
                    let connection = Connection(
                        peer: client.peer, engine: engine, server: state, budget: client.budget, channel: channel,
                        logger: logger)
                    try channel.pipeline.syncOperations.addHandler(FrameHandler(connection))
                    return connection
                }
            }
    }
}
