import Glibc
import JobCore
package import JobEngine
import JobModel
import JobProtocol
import Logging
import NIOCore
package import NIOPosix
import ServiceLifecycle
import Synchronization

/// Serves the protocol on a listening socket until a graceful shutdown.
package struct JobServer: Service {
    private let engine: Engine
    private let listener: Listener
    private let group: MultiThreadedEventLoopGroup
    private let state: ServerState

    package init(engine: Engine, listener: Listener, group: MultiThreadedEventLoopGroup, state: ServerState) {
        self.engine = engine
        self.listener = listener
        self.group = group
        self.state = state
    }

    /// Accepts and serves connections; returns after a shutdown, once the last connection is answered.
    package func run() async throws {
        let (connections, stop) = listener.connections(admit)
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { tasks in
                for await connection in connections {
                    tasks.addTask { await serve(connection) }
                }
            }
        } onGracefulShutdown: {
            stop()
        }
    }

    /// Counts and adopts a new connection, or tells the client why it is refused.
    ///
    /// Blocks the listener's thread until the event loop has the socket. Otherwise, clients that connect and disconnect without
    /// a pause fill the queue of the loop, so that it does not read its sockets.
    private func admit(_ descriptor: Int32) -> Connection? {
        guard let peer = Peer(socket: descriptor) else {
            close(descriptor)
            return nil
        }
        do {
            let budget = try state.enter(peer.uid, within: engine.limits)
            let adopted = group.any().makePromise(of: Connection.self)
            let channel = ClientBootstrap(group: group)
                .channelOption(.autoRead, value: false)
                .channelOption(.allowRemoteHalfClosure, value: true)
                .channelOption(.maxMessagesPerRead, value: 1)
                .channelInitializer { [engine, state] channel in
                    channel.eventLoop.makeCompletedFuture {
                        let connection = Connection(
                            peer: peer, engine: engine, server: state, budget: budget, channel: channel)
                        try channel.pipeline.syncOperations.addHandler(SocketHandler(connection))
                        adopted.succeed(connection)
                    }
                }
                .withConnectedSocket(descriptor)
            channel.cascadeFailure(to: adopted)
            return try channel.flatMap { _ in adopted.futureResult }.wait()
        } catch let error as ProtocolError {
            let line = Answer.failure(id: .null, error: error) + [UInt8(ascii: "\n")]
            // The socket is new and its buffer empty, so the line fits.
            _ = line.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            close(descriptor)
            state.warn(.connectionRefused, "A connection was refused.", of: peer.uid, ["reason": "\(error.message)"])
            return nil
        } catch {
            state.leave(peer.uid)
            state.logger.debug("A connection ended.", metadata: ["uid": "\(peer.uid)", "error": "\(error)"])
            return nil
        }
    }

    private func serve(_ connection: Connection) async {
        // Its task runs on the event loop of its socket, so that requests change threads only for the engine.
        await withTaskExecutorPreference(connection.loop) {
            await withGracefulShutdownHandler {
                await connection.run()
            } onGracefulShutdown: {
                connection.stop()
            }
        }
        state.leave(connection.peer.uid)
    }
}
