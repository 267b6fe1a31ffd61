import Glibc
import JobCore
package import JobEngine
package import JobModel
import JobProtocol
package import Logging
import LoopTasks
package import MetricsRegistry
import NIOCore
package import NIOPosix
import ServiceLifecycle

/// Serves the protocol on a listening socket, until it is shut down gracefully.
package struct JobServer: Service {
    private let engine: JobEngine
    private let listener: Listener
    private let group: MultiThreadedEventLoopGroup
    private let logger: Logger
    private let state: ServerState
    private let refusals: Refusals

    package init(
        engine: JobEngine, listener: Listener, group: MultiThreadedEventLoopGroup, identity: ServerIdentity,
        adminGroup: UInt32?, memory: MemoryTotal, metrics: MetricsRegistry? = nil, logger: Logger
    ) {
        self.engine = engine
        self.listener = listener
        self.group = group
        self.logger = logger
        state = ServerState(
            identity: identity, limits: engine.settings.limits, adminGroup: adminGroup, memory: memory,
            metrics: metrics)
        refusals = Refusals { [state, logger] user, error in
            state.warn(
                .connectionRefused, "A connection was refused.", of: user, ["reason": "\(error.message)"], to: logger)
        }
        // They are counted here.
        memory.onChange { engine.connected($0) }
    }

    /// Has the engine's settings as they are now hold for the next line, call and connection, and this group's members be
    /// administrators; nobody is disconnected.
    package func configure(adminGroup: UInt32?) {
        state.configure(engine.settings.limits, adminGroup: adminGroup)
    }

    /// Connections that are open now.
    package var connectionCount: Int { state.connectionCount }

    /// Accepts and serves connections; returns when it was shut down and the last connection has been answered.
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
        let user: UInt32
    }

    /// Counts a new connection, or has it told why there cannot be one more. This comes before anything waits, so that whoever
    /// is too many is told, however many come at once.
    private func admit(_ descriptor: Int32) -> Client? {
        guard let user = Peer.user(of: descriptor) else {
            close(descriptor)
            return nil
        }
        if let refusal = state.enter(user) {
            refusals.refuse(descriptor, of: user, refusal)
            return nil
        }
        return Client(descriptor: descriptor, user: user)
    }

    private func serve(_ client: Client) async {
        defer { state.leave(client.user) }
        do {
            let account = state.account(of: client.user)
            guard let peer = Peer(socket: client.descriptor) else {
                close(client.descriptor)
                return
            }
            let channel = try await adopt(client.descriptor, account)
            // Its tasks run on the event loop of its socket, so that a request changes threads for the store only.
            try await withTaskExecutorPreference(LoopExecutor(channel.channel.eventLoop)) {
                try await converse(channel, peer, account)
            }
        } catch {
            logger.debug("A connection ended.", metadata: ["uid": "\(client.user)", "error": "\(error)"])
        }
    }

    private typealias Channel = NIOAsyncChannel<ReadLines, OutgoingBytes>

    /// Begins a connection when it is its user's turn: else the loop would be busy with thousands of new ones before it looks
    /// at its sockets again.
    private func adopt(_ descriptor: Int32, _ account: MemoryAccount) async throws -> Channel {
        let (loop, turns) = (group.next(), account.turns)
        await turns.newConnections.enter()
        defer { turns.newConnections.leave(after: turns.pauseAfterConnecting, on: loop) }
        return try await ClientBootstrap(group: loop)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .withConnectedSocket(descriptor) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        FrameHandler(limit: { [limits = state.limits] in limits.line }, account: account))
                    return try Channel(
                        wrappingChannelSynchronously: channel,
                        configuration: .init(
                            backPressureStrategy: .init(lowWatermark: 1, highWatermark: 4),
                            isOutboundHalfClosureEnabled: true
                        ))
                }
            }
    }

    private func converse(_ channel: Channel, _ peer: Peer, _ account: MemoryAccount) async throws {
        let raw = channel.channel
        let connection = Connection(
            peer: peer, engine: engine, server: state, account: account,
            scheduler: state.scheduler(of: raw.eventLoop), channel: raw, logger: logger
        ) {
            state.warn(.clientClosed, "A client does not read; its connection is closed.", of: peer.uid, to: logger)
            raw.close(promise: nil)
        }
        // A client that has closed the connection waits for nothing.
        raw.closeFuture.whenComplete { _ in connection.clientLeft() }
        try await channel.executeThenClose { inbound, outbound in
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask {
                    while let bytes = await connection.outbox.next() {
                        try await outbound.write(bytes)
                    }
                    // A client that has shut its writing side may read later, and closing drops what it has not read.
                    await withTaskCancellationHandler {
                        await connection.outbox.flush()
                    } onCancel: {
                        raw.close(promise: nil)
                    }
                    outbound.finish()
                }
                await withGracefulShutdownHandler {
                    await read(inbound, connection, of: raw)
                } onGracefulShutdown: {
                    connection.shutDown()
                    // Ends the reading; what was read already is still answered. Who has just connected is about to send
                    // something, and did so in time.
                    if connection.hasBegun {
                        raw.close(mode: .input, promise: nil)
                    } else {
                        raw.eventLoop.scheduleTask(in: Self.patience) { raw.close(mode: .input, promise: nil) }
                    }
                }
                connection.outbox.finish()
                do { try await tasks.waitForAll() } catch {
                    connection.abandon()
                    throw error
                }
                connection.abandon()
            }
        }
    }

    /// How long a stop waits for the first call of a connection.
    private static let patience = TimeAmount.seconds(1)

    private func read(
        _ inbound: NIOAsyncChannelInboundStream<ReadLines>, _ connection: Connection, of channel: any NIOCore.Channel
    ) async {
        do {
            for try await lines in inbound {
                await connection.handle(lines)
                if connection.isShuttingDown { channel.close(mode: .input, promise: nil) }
            }
            // The client only shut its writing side: it still gets what it asked for.
            await connection.drained()
        } catch {
            // The connection broke: nobody is left to answer.
            connection.abandon()
        }
    }
}

/// What `server.info` says of the daemon.
package struct ServerIdentity: Sendable {
    package var name = "deferd"
    package var version: String
    package var pid: Int
    package var startedAt: Timestamp

    package init(version: String, pid: Int, startedAt: Timestamp) {
        self.version = version
        self.pid = pid
        self.startedAt = startedAt
    }
}
