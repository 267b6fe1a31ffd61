import JobCore
import JobEngine
import JobModel
import JobProtocol
import Logging
import LoopTasks
import NIOCore
import Synchronization

/// One client: what it waits for, watches and has under way. ``run()`` takes its lines in order.
final class Connection: Sendable {
    private let peer: Peer
    let engine: Engine
    let outbox: Outbox
    let server: ServerState
    let budget: UserBudget
    private let channel: any Channel
    /// The event loop of the socket.
    let loop: LoopExecutor
    /// As they are now.
    var limits: JobLimits { server.limits }
    private let lines: AsyncStream<ReadLines>
    private let received: AsyncStream<ReadLines>.Continuation
    let state = Mutex(State())
    /// Who calls, with the rights that they have now: the administrators' group may change while they are connected.
    var caller: Caller { peer.caller(adminGroup: server.adminGroup) }

    struct Wait {
        let call: Call
        let charge: BudgetCharge
        var timer: Scheduled<Void>?
    }

    struct State {
        var waits: [RequestID: Wait] = [:]
        var watches: [Int: ConnectionWatch] = [:]
        var lastWatch = 0
        /// The latest watches that the client has ended itself.
        var unwatched: Set<Int> = []
        /// Lines whose answers are not complete.
        var open = 0
        /// Groups of submissions without an answer.
        var submitting = 0
        var isShuttingDown = false
        /// A call has come.
        var hasBegun = false
        /// The client is gone, so no answer is sent.
        var isGone = false
        /// The copy of the state that the client reads.
        var backup: StateBackup?
        /// What the task that takes the lines waits for.
        var waiter: (isSo: @Sendable (borrowing State) -> Bool, continuation: CheckedContinuation<Void, Never>)?
    }

    init(
        peer: Peer, engine: Engine, server: ServerState, budget: UserBudget, channel: any Channel, logger: Logger
    ) {
        self.peer = peer
        self.engine = engine
        self.server = server
        self.budget = budget
        self.channel = channel
        loop = LoopExecutor(channel.eventLoop)
        (lines, received) = AsyncStream.makeStream()
        let loop = channel.eventLoop
        outbox = Outbox(limit: server.limits.outbound, budget: budget) { outbox, atOnce in
            if atOnce, loop.inEventLoop { return outbox.write(to: channel) }
            // What comes together goes out together.
            loop.execute { outbox.write(to: channel) }
        } overflowed: {
            server.warn(.clientClosed, "A client does not read; its connection is closed.", of: peer.uid, to: logger)
            channel.close(promise: nil)
        }
    }

    // MARK: - Lines

    /// Lines have been read.
    func receive(_ read: ReadLines) {
        state.withLock { $0.hasBegun = true }
        received.yield(read)
    }

    /// No further line comes.
    func inputEnded() {
        received.finish()
        if !channel.isActive { clientLeft() }
    }

    /// The socket takes more.
    func send() { outbox.write(to: channel) }

    /// Carries out what the client sends, and returns once it has all that it waits for, or is gone.
    func run() async {
        await withTaskCancellationHandler {
            readOn()
            for await read in lines {
                await handle(read)
                if isShuttingDown { channel.close(mode: .input, promise: nil) }
                readOn()
            }
            // A client that only shut its writing side still gets what it asked for.
            await wait { state in
                state.open == 0 && (state.isShuttingDown || state.watches.values.allSatisfy(\.isSettled))
            }
            await outbox.finish()
        } onCancel: {
            clientLeft()
            channel.close(promise: nil)
        }
        abandon()
        try? await channel.close()
    }

    private func readOn() {
        let channel = channel
        budget.whenReadable(on: loop.loop) { channel.read() }
    }

    // MARK: - Waiting

    /// Returns once the state is so, or the client is gone. Only the task that takes the lines waits.
    func wait(until isSo: @escaping @Sendable (borrowing State) -> Bool) async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.waiter = (isSo, continuation) }
            changed()
        }
    }

    /// Lets the task go on that waits for the state as it is now.
    func changed() {
        let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard let waiter = state.waiter, state.isGone || waiter.isSo(state) else { return nil }
            state.waiter = nil
            return waiter.continuation
        }
        continuation?.resume()
    }

    // MARK: - Backups

    var keptBackup: StateBackup? { state.withLock { $0.backup } }

    /// Keeps a copy of the state for this client, until it is gone.
    func keep(backup: StateBackup?) {
        // The old one, if any, is closed outside of the lock, as that may take long.
        _ = state.withLock { state in
            defer { state.backup = state.isGone ? nil : backup }
            return state.backup
        }
    }

    // MARK: - Waits

    /// Registers a wait for so many jobs; gives its request, or the reason why there cannot be one more.
    func beginWait(_ call: Call, jobs: Int) throws(ProtocolError) -> RequestID {
        let charge = try register(bytes: jobs * Self.bytesPerID)
        let id = engine.nextID()
        let isOpen = state.withLock { state in
            // A wait that began after the others were ended would never be ended.
            if !state.isShuttingDown { state.waits[id] = Wait(call: call, charge: charge) }
            return !state.isShuttingDown
        }
        guard isOpen else { throw Self.shuttingDown }
        return id
    }

    /// Why one more call is refused, where so many have no answer yet. All but waits are answered before the next.
    func refusalAboveLimit() -> ProtocolError? {
        let most = limits.inFlight
        guard state.withLock({ $0.waits.count >= most }) else { return nil }
        return .busy("This connection has \(most) calls without an answer; wait for some of them.", retryAfter: 1)
    }

    func isWaiting(_ id: RequestID) -> Bool { state.withLock { $0.waits[id] != nil } }

    /// Has a wait end with this timer; where it is over, the timer is.
    func set(_ timer: Scheduled<Void>, of id: RequestID) {
        let isOpen = state.withLock { state in
            state.waits[id]?.timer = timer
            return state.waits[id] != nil
        }
        if !isOpen { timer.cancel() }
    }

    /// Removes a wait that gets its answer; nil where it was answered before.
    func endWait(_ id: RequestID) -> Call? {
        let wait = state.withLock { $0.waits.removeValue(forKey: id) }
        wait?.timer?.cancel()
        return wait?.call
    }

    /// About what each job takes that a wait or a watch names: its id stands in the core under the job and in the order asked
    /// for, and in a watch among those that are unfinished.
    static let bytesPerID = 192

    /// Counts what stays in memory until it is not retained any more.
    func register(bytes: Int) throws(ProtocolError) -> BudgetCharge {
        guard let charge = BudgetCharge(registering: bytes, in: budget) else { throw Self.noRoom }
        return charge
    }

    static let noRoom = ProtocolError.busy(
        "Your waits, watches and batches take all the memory that they may; end some, or wait a little.", retryAfter: 1)

    // MARK: - Ending

    /// Answers the open waits, as nothing more will come.
    func shutDown() {
        let waits = state.withLock { state in
            state.isShuttingDown = true
            defer { state.waits = [:] }
            return Array(state.waits.values)
        }
        for wait in waits {
            wait.timer?.cancel()
            wait.call.fail(Self.shuttingDown)
        }
        changed()
    }

    /// How long a stop waits for the first call of a connection.
    private static let patience = TimeAmount.seconds(1)

    /// Ends the reading as the daemon stops; what was read already is still answered. A client that has just connected is about
    /// to send something, and did so in time.
    func stop() {
        shutDown()
        let channel = channel
        guard !state.withLock(\.hasBegun) else { return channel.close(mode: .input, promise: nil) }
        loop.loop.scheduleTask(in: Self.patience) { channel.close(mode: .input, promise: nil) }
    }

    /// Whether the client has closed the connection. The channel knows before ``clientLeft()`` is called, which is after what had
    /// been read is carried out.
    var isGone: Bool { !channel.isActive || state.withLock(\.isGone) }

    var isShuttingDown: Bool { state.withLock(\.isShuttingDown) }

    static let shuttingDown = ProtocolError(
        .shuttingDown, "The daemon is shutting down; ask again when it is back.")

    /// The connection is closed: nothing can be sent any more, so nothing is waited for.
    func clientLeft() {
        outbox.close()
        state.withLock { state in
            state.isShuttingDown = true
            state.isGone = true
            state.backup = nil
        }
        received.finish()
        changed()
    }

    /// Gives up what the client no longer waits for.
    private func abandon() {
        let (waits, watches) = state.withLock { state in
            defer { state.waits = [:] }
            return (state.waits, Array(state.watches.values))
        }
        for (id, wait) in waits {
            wait.timer?.cancel()
            engine.abandon(id, of: peer.uid)
        }
        for watch in watches { end(watch) }
        clientLeft()
    }
}
