import DeferredKit
import Glibc
import NIOCore
import Synchronization

/// One program from its start to the end of its process group, as the guard reports it.
final class ProgramRun: Sendable {
    enum Ending: Sendable, Equatable {
        case exited(Int)
        case signalled(Int)
        case refused(Int32, isDirectory: Bool)
        /// The program guard was killed, and the program with it.
        case lost
    }

    static let grace = TimeAmount.seconds(5)

    private static let lastID = Atomic<UInt64>(0)

    let id = lastID.add(1, ordering: .relaxed).newValue
    let guardian: ProgramGuard
    let ending = Promise<Ending, Never>()
    let end = Promise<Void, Never>()
    let process = Mutex<pid_t?>(nil)
    private let isStopping = Atomic(false)

    init(by guardian: ProgramGuard) { self.guardian = guardian }

    /// Whether the program has ended, but not its process group.
    var hasRemains: Bool { ending.deferred.isResolved && !end.deferred.isResolved }

    /// Ends the process group: with SIGTERM now, with SIGKILL later by `clock`. The run ends even if the kernel keeps a process.
    func stop(by clock: any EventLoop) {
        guard !end.deferred.isResolved, !isStopping.exchange(true, ordering: .relaxed) else { return }
        guardian.send(SIGTERM, to: id)
        let kill = clock.scheduleTask(in: Self.grace) { self.guardian.endGroup(of: self) }
        end.deferred.upon { _ in kill.cancel() }
    }

    /// The whole run ends, as the guard was lost, or could not end the program.
    func end(with ending: Ending) {
        self.ending.succeed(ending)
        end.succeed(())
    }
}
