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

    private struct State {
        var process: pid_t?
        var ending: Ending?
        var hasEnded = false
        var isStopping = false
        var onExit: [@Sendable (Ending) -> Void] = []
        var onEnd: [@Sendable () -> Void] = []
        var kill: Scheduled<Void>?
    }

    /// How long SIGTERM has before SIGKILL follows.
    static let grace = TimeAmount.seconds(5)

    let id: UInt64
    private let state = Mutex(State())
    private let clock: any EventLoop
    private let signal: @Sendable (UInt64, Int32) -> Void

    init(id: UInt64, clock: any EventLoop, signal: @escaping @Sendable (UInt64, Int32) -> Void) {
        self.id = id
        self.clock = clock
        self.signal = signal
    }

    /// The process id, once it is known.
    var process: pid_t? { state.withLock(\.process) }

    func started(_ process: pid_t) { state.withLock { $0.process = process } }

    func exited(_ ending: Ending) {
        let bodies = state.withLock { state -> [@Sendable (Ending) -> Void] in
            guard state.ending == nil else { return [] }
            state.ending = ending
            defer { state.onExit = [] }
            return state.onExit
        }
        for body in bodies { body(ending) }
    }

    /// The group has ended.
    func ended() {
        let (bodies, kill) = state.withLock { state in
            state.hasEnded = true
            defer { (state.onEnd, state.kill) = ([], nil) }
            return (state.onEnd, state.kill)
        }
        kill?.cancel()
        for body in bodies { body() }
    }

    /// Whether the program has exited and its group has not ended.
    var hasRemains: Bool { state.withLock { $0.ending != nil && !$0.hasEnded } }

    /// Calls `body` as soon as it is known how the program ended, after those that were given before.
    func onExit(_ body: @escaping @Sendable (Ending) -> Void) {
        let ending = state.withLock { state in
            if state.ending == nil { state.onExit.append(body) }
            return state.ending
        }
        if let ending { body(ending) }
    }

    /// Calls `body` as soon as the group has ended.
    func onEnd(_ body: @escaping @Sendable () -> Void) {
        let hasEnded = state.withLock { state in
            if !state.hasEnded { state.onEnd.append(body) }
            return state.hasEnded
        }
        if hasEnded { body() }
    }

    /// Has the group end: SIGTERM now, SIGKILL later.
    func stop() {
        let mustStop = state.withLock { state in
            guard !state.isStopping, !state.hasEnded else { return false }
            state.isStopping = true
            return true
        }
        guard mustStop else { return }
        signal(id, SIGTERM)
        let kill = clock.scheduleTask(in: Self.grace) { self.signal(self.id, SIGKILL) }
        let hasEnded = state.withLock { state in
            if !state.hasEnded { state.kill = kill }
            return state.hasEnded
        }
        if hasEnded { kill.cancel() }
    }
}
