import Dispatch
import GRDB
import Synchronization

/// Writes the log into the database on a thread and a connection of its own, while commits go on.
///
/// What was committed meanwhile is left over, and as long as anything is, the log only grows. That small rest is for the
/// writer to finish between two groups; then its next commit begins the log anew.
final class Checkpointer: Sendable {
    private enum State {
        case idle
        case running
        /// The writer is to write the rest.
        case written
    }

    private let connection: DatabaseQueue
    private let queue = DispatchQueue(label: "deferd.store.checkpoint", qos: .utility)
    private let state = Mutex(State.idle)
    private let report: CheckpointReport

    init(_ path: String, _ report: CheckpointReport) throws {
        self.report = report
        var configuration = Configuration()
        configuration.qos = .default
        configuration.label = "deferd.store.checkpoint"
        configuration.foreignKeysEnabled = false
        configuration.prepareDatabase { try Room.keepInChunks($0) }
        connection = try DatabaseQueue(path: path, configuration: configuration)
    }

    /// Begins to write the log, unless that is under way; `done` is called when it is written.
    func start(_ done: @escaping @Sendable () -> Void) {
        let isIdle = state.withLock { state in
            if state == .running { return false }
            state = .running
            return true
        }
        guard isIdle else { return }
        queue.async {
            // Where it fails the log is still whole, and the next commits try again.
            self.report.run { _ = try self.connection.writeWithoutTransaction { try $0.checkpoint(.passive) } }
            self.state.withLock { $0 = .written }
            done()
        }
    }

    /// Whether the log was written since this was last asked.
    func consumeWritten() -> Bool {
        state.withLock { state in
            guard state == .written else { return false }
            state = .idle
            return true
        }
    }

    /// Waits for what is under way.
    func wait() {
        queue.sync {}
    }

    func close() {
        queue.sync { try? connection.close() }
    }
}
