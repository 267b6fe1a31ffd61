import JobModel
import NIOCore
import NIOPosix
import Synchronization

/// Connects to the first of several addresses that answers: each is tried a little after the one before (RFC 8305).
///
/// At most as many descriptors are open as there are addresses; all but the winner's are closed.
final class ConnectionAttempt: Sendable {
    private struct State {
        var next = 0
        var pending: [ObjectIdentifier: any Channel] = [:]
        var running = 0
        var firstFailure: (any Error)?
        var timer: Scheduled<Void>?
        var isOver = false
    }

    /// How long an address is given before the next is tried too.
    static let stagger = TimeAmount.milliseconds(250)
    /// At most so many addresses of a name are tried, the first ones.
    static let most = 16

    private let addresses: ArraySlice<SocketAddress>
    private let loop: any EventLoop
    private let clock: any EventLoop
    private let state = Mutex(State())
    private let deliver: @Sendable (Result<any Channel, any Error>) -> Bool

    init(
        _ addresses: [SocketAddress], on loop: any EventLoop, by clock: any EventLoop,
        _ deliver: @escaping @Sendable (Result<any Channel, any Error>) -> Bool
    ) {
        self.addresses = addresses.prefix(Self.most)
        self.loop = loop
        self.clock = clock
        self.deliver = deliver
    }

    /// Tries the next address. `deliver` says whether what it is given was waited for.
    func start() {
        let address = state.withLock { state -> SocketAddress? in
            guard !state.isOver, state.next < addresses.count else { return nil }
            defer { state.next += 1 }
            state.running += 1
            state.timer?.cancel()
            if state.next + 1 < addresses.count {
                state.timer = clock.scheduleTask(in: Self.stagger) { self.start() }
            }
            return addresses[state.next]
        }
        guard let address else { return }
        // Without a limit of its own: the caller has one, and ends all attempts.
        ClientBootstrap(group: loop)
            .connectTimeout(.hours(24))
            .channelInitializer { channel in
                self.enter(channel)
                    ? channel.eventLoop.makeSucceededVoidFuture()
                    : channel.eventLoop.makeFailedFuture(TransferError.cancelled)
            }
            .connect(to: address)
            .whenComplete { self.finish($0) }
    }

    private func enter(_ channel: any Channel) -> Bool {
        state.withLock { state in
            if !state.isOver { state.pending[ObjectIdentifier(channel)] = channel }
            return !state.isOver
        }
    }

    private func finish(_ result: Result<any Channel, any Error>) {
        switch result {
        case .success(let channel):
            let isFirst = state.withLock { state in
                state.pending[ObjectIdentifier(channel)] = nil
                return !state.isOver
            }
            end()
            if !isFirst || !deliver(.success(channel)) { channel.close(promise: nil) }
        case .failure(let error):
            let failure = state.withLock { state -> (any Error)? in
                state.running -= 1
                state.firstFailure = state.firstFailure ?? error
                return state.running == 0 && state.next == addresses.count ? state.firstFailure : nil
            }
            if let failure {
                end()
                _ = deliver(.failure(failure))
            } else {
                start()
            }
        }
    }

    /// Gives up the attempts that are still going on.
    func end() {
        let (pending, timer) = state.withLock { state in
            defer { (state.pending, state.timer, state.isOver) = ([:], nil, true) }
            return (Array(state.pending.values), state.timer)
        }
        timer?.cancel()
        for channel in pending { channel.close(promise: nil) }
    }
}
