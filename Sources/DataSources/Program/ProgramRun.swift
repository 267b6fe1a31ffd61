import DeferredKit
import Glibc
import JobModel
import NIOCore
import Synchronization

/// One program from its start to the end of its process group.
///
/// States: starting (until the guard has tried), running, exited (others of its group may be left), ended. The guard's
/// reports move it on; what it is told after its end is dropped.
final class ProgramRun: Sendable {
    /// How the program itself ended.
    enum Ending: Sendable, Equatable {
        case exited(Int)
        case signalled(Int)
        case refused(Int32, isDirectory: Bool)
        /// The program guard was killed, and the program with it.
        case lost
    }

    /// How long SIGTERM has before SIGKILL follows.
    static let grace = TimeAmount.seconds(5)

    let id: UInt64
    /// Resolved once it is known how the program ended.
    let ending = Promise<Ending, Never>()
    /// Resolved once its group has ended.
    let end = Promise<Void, Never>()
    private let startedProcess = Mutex<pid_t?>(nil)
    private let isStopping = Atomic(false)
    private let clock: any EventLoop
    private let signal: @Sendable (UInt64, Int32) -> Void

    init(id: UInt64, clock: any EventLoop, signal: @escaping @Sendable (UInt64, Int32) -> Void) {
        self.id = id
        self.clock = clock
        self.signal = signal
    }

    /// The process id, once it is known.
    var process: pid_t? { startedProcess.withLock(\.self) }

    func started(_ process: pid_t) { startedProcess.withLock { $0 = process } }

    /// Whether the program has exited and its group has not ended.
    var hasRemains: Bool { ending.deferred.isResolved && !end.deferred.isResolved }

    /// Has the group end: SIGTERM now, SIGKILL later.
    func stop() {
        guard !end.deferred.isResolved, !isStopping.exchange(true, ordering: .relaxed) else { return }
        signal(id, SIGTERM)
        let kill = clock.scheduleTask(in: Self.grace) { self.signal(self.id, SIGKILL) }
        end.deferred.upon { _ in kill.cancel() }
    }
}
