import DeferredKit
import Glibc
import JobModel
import NIOCore
import Synchronization

/// One program from its start to the end of its process group, as the guard reports it.
final class ProgramRun: Sendable {
    /// How the program itself ended.
    enum Ending: Sendable, Equatable {
        case exited(Int)
        case signalled(Int)
        case refused(Int32, isDirectory: Bool)
        /// The program guard was killed, and the program with it.
        case lost
    }

    /// The time between SIGTERM and SIGKILL.
    static let grace = TimeAmount.seconds(5)

    let id: UInt64
    /// Resolved when the program has ended.
    let ending = Promise<Ending, Never>()
    /// Resolved when its process group has ended.
    let end = Promise<Void, Never>()
    /// The process id, once it is known.
    let process = Mutex<pid_t?>(nil)
    private let isStopping = Atomic(false)
    private let clock: any EventLoop
    private let signal: @Sendable (UInt64, Int32) -> Void

    init(id: UInt64, clock: any EventLoop, signal: @escaping @Sendable (UInt64, Int32) -> Void) {
        self.id = id
        self.clock = clock
        self.signal = signal
    }

    /// Whether the program has ended, but not its process group.
    var hasRemains: Bool { ending.deferred.isResolved && !end.deferred.isResolved }

    /// Ends the process group: with SIGTERM now, with SIGKILL later.
    func stop() {
        guard !end.deferred.isResolved, !isStopping.exchange(true, ordering: .relaxed) else { return }
        signal(id, SIGTERM)
        let kill = clock.scheduleTask(in: Self.grace) { self.signal(self.id, SIGKILL) }
        end.deferred.upon { _ in kill.cancel() }
    }

    /// The whole run ends, as the guard could not start the program, or was lost.
    func end(with ending: Ending) {
        self.ending.succeed(ending)
        end.succeed(())
    }
}
