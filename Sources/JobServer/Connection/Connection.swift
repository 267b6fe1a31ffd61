import JobCore
import JobEngine
import JobModel
import JobProtocol
import Logging
import LoopTasks
import NIOCore
import Synchronization

/// One client: its waits, watches and calls in progress; ``run()`` processes its lines in order.
final class Connection: Sendable {
    let peer: Peer
    let engine: Engine
    let outbox: Outbox
    let server: ServerState
    let budget: UserBudget
    private let channel: any Channel
    /// The socket's event loop.
    let loop: LoopExecutor
    var limits: JobLimits { engine.limits }
    private let lines: AsyncStream<ReadLines>
    private let received: AsyncStream<ReadLines>.Continuation
    let state = Mutex(State())
    /// The caller with current rights: the administrators' group may change while it is connected.
    var caller: Caller { peer.caller(adminGroup: server.adminGroup) }

    struct Wait {
        let call: Call
        let charge: BudgetCharge
        let timer: Scheduled<Void>?
    }

    struct State {
        var waits: [RequestID: Wait] = [:]
        var watches: [Int: Watch] = [:]
        var lastWatch = 0
        /// The latest watches that the client ended itself.
        var unwatched: Set<Int> = []
        /// Waits that are being answered.
        var answering = 0
        /// Groups of submissions without an answer.
        var submitting = 0
        var isShuttingDown = false
        /// Whether a call has arrived.
        var hasBegun = false
        /// The copy of the stored state that the client reads.
        var backup: StateBackup?
        /// The condition that the line-processing task waits for.
        var waiter: (isSatisfied: @Sendable (borrowing State) -> Bool, continuation: CheckedContinuation<Void, Never>)?
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
        outbox = Outbox(limit: engine.limits.outbound, budget: budget) { outbox in
            channel.eventLoop.execute { outbox.write(to: channel) }
        } overflowed: {
            server.warn(.clientClosed, "A client does not read; its connection is closed.", of: peer.uid, to: logger)
            channel.close(promise: nil)
        }
        outbox.onDrain { [weak self] in self?.changed() }
    }

    // MARK: - Lines

    /// Accepts the lines of one read.
    func receive(_ read: ReadLines) {
        state.withLock { $0.hasBegun = true }
        received.yield(read)
    }

    /// Records the end of the input. If the connection is closed, nothing can be sent, so all waiting ends.
    func inputEnded() {
        received.finish()
        guard !channel.isActive else { return }
        outbox.close()
        let backup = state.withLock { state in
            state.isShuttingDown = true
            return exchange(&state.backup, with: nil)
        }
        backup?.end()
        changed()
    }

    /// Sends more, as the socket is writable.
    func send() { outbox.write(to: channel) }

    /// Executes the client's calls; returns once the client has all that it waits for, or is gone.
    func run() async {
        await withTaskCancellationHandler {
            readOn()
            for await read in lines {
                await handle(read)
                if isShuttingDown { channel.close(mode: .input, promise: nil) }
                readOn()
            }
            // A client that only shut down its writing side still gets its answers.
            await wait { state in
                state.waits.isEmpty && state.answering == 0 && state.submitting == 0
                    && (state.isShuttingDown || state.watches.values.allSatisfy(\.isSettled))
            }
            outbox.finish()
            await wait { [outbox] _ in outbox.isEmpty }
        } onCancel: {
            channel.close(promise: nil)
        }
        try? await channel.close()
        shutDown()
        for watch in state.withLock({ Array($0.watches.values) }) { end(watch) }
    }

    private func readOn() {
        let channel = channel
        budget.whenRoom(on: loop.loop) { channel.read() }
    }

    // MARK: - Waiting

    /// Returns once `isSatisfied` is true or the client is gone; only the line-processing task waits.
    func wait(until isSatisfied: @escaping @Sendable (borrowing State) -> Bool) async {
        if state.withLock({ isSatisfied($0) }) { return }
        await withCheckedContinuation { continuation in
            state.withLock { $0.waiter = (isSatisfied, continuation) }
            changed()
        }
    }

    /// Resumes the waiting task if the state now satisfies its condition.
    func changed() {
        let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard let waiter = state.waiter, isGone || waiter.isSatisfied(state) else { return nil }
            state.waiter = nil
            return waiter.continuation
        }
        continuation?.resume()
    }

    // MARK: - Waits

    /// Carries out a call that names `jobs` jobs while later calls go on, for at most `timeout` seconds. `body` returns the
    /// result as JSON text, which is dropped if the wait is over by then. The end of the wait cancels `timer`.
    func goOn(
        _ call: Call, jobs: Int, timeout: Double? = nil, timer: Scheduled<Void>? = nil,
        _ body: @escaping @Sendable (RequestID) async throws -> [UInt8]
    ) throws(ProtocolError) {
        let id = engine.nextID()
        let timer =
            timer
            ?? timeout.map { timeout in
                loop.loop.scheduleTask(in: .seconds(saturating: timeout)) { [weak self] () -> Void in
                    self?.giveUp(id, Self.outOfTime)
                }
            }
        do throws(ProtocolError) {
            let charge = try BudgetCharge(registering: Self.bytesPerWait + jobs * Self.bytesPerID, in: budget)
            let isOpen = state.withLock { state in
                // A wait begun after the others were ended would never end.
                if !state.isShuttingDown { state.waits[id] = Wait(call: call, charge: charge, timer: timer) }
                return !state.isShuttingDown
            }
            guard isOpen else { throw Self.shuttingDown }
        } catch {
            timer?.cancel()
            throw error
        }
        // The wait owns the task, which looks whether it is over.
        Task(executorPreference: loop) { [self] in
            do {
                let result = try await body(id)
                endWait(id) { $0.succeed(text: result) }
            } catch {
                endWait(id) { $0.fail(error) }
            }
        }
    }

    func isWaiting(_ id: RequestID) -> Bool { state.withLock { $0.waits[id] != nil } }

    /// Answers a wait, unless it is answered already.
    private func endWait(_ id: RequestID, _ answer: (Call) -> Void) {
        let wait = state.withLock { state in
            let wait = state.waits.removeValue(forKey: id)
            if wait != nil { state.answering += 1 }
            return wait
        }
        guard let wait else { return }
        wait.timer?.cancel()
        answer(wait.call)
        state.withLock { $0.answering -= 1 }
        changed()
    }

    private func giveUp(_ id: RequestID, _ error: ProtocolError) {
        engine.abandon(id, of: peer.uid)
        endWait(id) { $0.fail(error) }
    }

    static let outOfTime = ProtocolError(.timeout, "The wait ran out of time.")

    /// The approximate memory of a wait with its task, in bytes.
    private static let bytesPerWait = 2048

    /// The approximate memory of a job that a wait or watch names, in bytes: its id in the core, under the job and in
    /// the requested order, and in a watch among the unfinished jobs.
    static let bytesPerID = 192

    // MARK: - Ending

    /// Answers the open waits, as no more events come.
    private func shutDown() {
        let waits = state.withLock { state in
            state.isShuttingDown = true
            return Array(state.waits.keys)
        }
        for id in waits { giveUp(id, Self.shuttingDown) }
        changed()
    }

    /// The time that a stop waits for a connection's first call.
    private static let patience = TimeAmount.seconds(1)

    /// Ends the reading as the daemon stops; lines already read are still answered.
    /// A new client gets time for its first call, as it connected before the stop.
    func stop() {
        shutDown()
        let channel = channel
        guard !state.withLock(\.hasBegun) else { return channel.close(mode: .input, promise: nil) }
        loop.loop.scheduleTask(in: Self.patience) { channel.close(mode: .input, promise: nil) }
    }

    /// Whether the connection is closed, so that no answer is sent.
    var isGone: Bool { outbox.isClosed }

    var isShuttingDown: Bool { state.withLock(\.isShuttingDown) }

    static let shuttingDown = ProtocolError(
        .shuttingDown, "The daemon is shutting down; ask again when it is back.")
}
