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
    let channel: any Channel
    /// The socket's event loop.
    let loop: LoopExecutor
    var limits: JobLimits { engine.limits }
    let input = AsyncStream.makeStream(of: Input.self)
    let state = Mutex(State())
    /// Has an element after changes of what the line-processing task may wait for.
    private let changes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    /// The caller with current rights: the administrators' group may change while it is connected.
    var caller: Caller { peer.caller(adminGroup: server.adminGroup) }

    struct State {
        var waits: [Int64: (call: Call, task: Task<Void, Never>)] = [:]
        var watches: [Int: Watch] = [:]
        var lastWatch = 0
        /// Groups of submissions without an answer.
        var submitting = 0
        var isShuttingDown = false
        /// Whether a call has arrived.
        var hasBegun = false
        /// The copy of the stored state that the client reads.
        var backup: BlobReference?
    }

    init(peer: Peer, engine: Engine, server: ServerState, budget: UserBudget, channel: any Channel) {
        self.peer = peer
        self.engine = engine
        self.server = server
        self.budget = budget
        self.channel = channel
        loop = LoopExecutor(channel.eventLoop)
        outbox = Outbox(limit: engine.limits.outbound, budget: budget) { outbox in
            channel.eventLoop.execute { outbox.write(to: channel) }
        } drained: { [changes] in
            changes.continuation.yield()
        } overflowed: {
            server.warn(.clientClosed, "A client does not read; its connection is closed.", of: peer.uid)
            channel.close(promise: nil)
        }
    }

    /// Executes the client's calls; returns once the client has all that it waits for, or is gone.
    func run() async {
        await withTaskCancellationHandler {
            await readLines()
            // A client that only shut down its writing side still gets its answers.
            await wait { state in
                state.waits.isEmpty && state.submitting == 0
                    && (state.isShuttingDown || state.watches.values.allSatisfy(\.isSettled))
            }
            for watch in state.withLock({ Array($0.watches.values) }) { end(watch) }
            await wait { _ in outbox.isEmpty }
        } onCancel: {
            channel.close(promise: nil)
        }
        try? await channel.close()
        if let last = state.withLock({ exchange(&$0.backup, with: nil) }) { engine.blobs.remove([last]) }
    }

    // MARK: - Waiting

    /// Returns once `isSatisfied` is true or the client is gone; only the line-processing task waits.
    func wait(until isSatisfied: (borrowing State) -> Bool) async {
        var changes = changes.stream.makeAsyncIterator()
        while !state.withLock({ isSatisfied($0) }), !outbox.isClosed {
            // A cancelled task ends its connection.
            if await changes.next() == nil { return }
        }
    }

    /// Lets the waiting task look again.
    func changed() { changes.continuation.yield() }

    // MARK: - Waits

    /// Carries out a call that names `jobs` jobs while later calls go on, for at most `timeout` seconds. `body` gets the id
    /// of its turns, which is also that of its wait in the engine, and returns the result as JSON text; if the wait ends before,
    /// its task is cancelled.
    func goOn(
        _ call: Call, jobs: Int, timeout: Double? = nil, _ body: @escaping @Sendable (Int64) async throws -> [UInt8]
    ) throws(ProtocolError) {
        // A wait begun after the others were ended would never end.
        if isShuttingDown { throw ProtocolError.stopping }
        let id = engine.nextID()
        // Only the id waits, and not the rest of the line, which may be a long batch.
        let request = Request(id: call.request.id, method: call.request.method, params: [:])
        let bytes = Self.bytesPerWait + jobs * Self.bytesPerID + (request.id?.size ?? 0)
        let waiting = Call(
            request: request, batch: call.batch, charge: try BudgetCharge(registering: bytes, in: budget),
            outbox: outbox)
        // The wait owns the task, which begins on this event loop, after this.
        let task = Task(executorPreference: loop) { [self] in
            let timer = timeout.map { timeout in
                loop.loop.scheduleTask(in: .seconds(saturating: timeout)) { self.endWait(id, .failure(Self.outOfTime)) }
            }
            defer { timer?.cancel() }
            do { endWait(id, .success(try await body(id))) } catch { endWait(id, .failure(error)) }
            outbox.endTurn(of: id)
        }
        state.withLock { $0.waits[id] = (waiting, task) }
    }

    /// Answers a wait on the event loop, unless it is answered already.
    private func endWait(_ id: Int64, _ result: Result<[UInt8], any Error>) {
        guard let wait = state.withLock({ $0.waits.removeValue(forKey: id) }) else { return }
        wait.task.cancel()
        switch result {
        case .success(let text): wait.call.succeed(text: text)
        case .failure(let error):
            wait.call.fail(error)
            engine.abandon(id, of: peer.uid)
        }
        changed()
    }

    static let outOfTime = ProtocolError(.timeout, "The wait ran out of time.")

    /// The approximate memory of a wait with its task, in bytes.
    private static let bytesPerWait = 2048

    /// The approximate memory of a job that a wait or watch names, in bytes: its id in the core, under the job and in
    /// the requested order, and in a watch among the unfinished jobs.
    static let bytesPerID = 192

    // MARK: - Ending

    /// Answers the open waits, as no more events come.
    func shutDown() {
        let waits = state.withLock { state in
            state.isShuttingDown = true
            return Array(state.waits.keys)
        }
        for id in waits { endWait(id, .failure(ProtocolError.stopping)) }
        changed()
    }

    /// The time that a stop waits for a connection's first call.
    private static let patience = TimeAmount.seconds(1)

    /// Ends the reading as the daemon stops; lines already read are still answered.
    /// A new client gets time for its first call, as it connected before the stop.
    func stop() {
        loop.submit { [self] in
            shutDown()
            let pause = state.withLock(\.hasBegun) ? .zero : Self.patience
            loop.loop.scheduleTask(in: pause) { [channel] in channel.close(mode: .input, promise: nil) }
        }
    }

    var isShuttingDown: Bool { state.withLock(\.isShuttingDown) }
}
