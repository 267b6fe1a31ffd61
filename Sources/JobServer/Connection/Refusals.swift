import Dispatch
import Glibc
import JobModel
import JobProtocol
import Synchronization

/// Tells connections that are too many so, and closes them, on a thread of its own: that takes longer than to accept one, and
/// whoever connects waits in the kernel's queue behind all who came before.
///
/// On one thread with accepting, four clients that connect and go without a pause have another user's new connection answered 20
/// to 30 times as late, instead of less than twice (`soak floods 3 vanish`).
final class Refusals: Sendable {
    private struct Refused {
        let descriptor: Int32
        let user: UInt32
        let reason: ServerState.Refusal
    }

    private struct State {
        var waiting: [Refused] = []
        var isBusy = false
    }

    /// How many may wait here, each with its descriptor. Past that whoever accepts waits, and so does whoever connects.
    private static let most = 256

    private let state = Mutex(State())
    private let room = DispatchSemaphore(value: Refusals.most)
    private let queue = DispatchQueue(label: "deferd.refuse")
    private let told: @Sendable (UInt32, ProtocolError) -> Void

    /// `told` is called with each user who was refused, and why, once they know.
    init(told: @escaping @Sendable (UInt32, ProtocolError) -> Void) {
        self.told = told
    }

    /// Owns the descriptor from now on.
    func refuse(_ descriptor: Int32, of user: UInt32, _ reason: ServerState.Refusal) {
        room.wait()
        let isFirst = state.withLock { state in
            state.waiting.append(Refused(descriptor: descriptor, user: user, reason: reason))
            defer { state.isBusy = true }
            return !state.isBusy
        }
        if isFirst { queue.async { self.drain() } }
    }

    private func drain() {
        while true {
            let next = state.withLock { state in
                defer { state.waiting = [] }
                state.isBusy = !state.waiting.isEmpty
                return state.waiting
            }
            if next.isEmpty { return }
            for refused in next {
                tell(refused)
                room.signal()
            }
        }
    }

    private func tell(_ refused: Refused) {
        let error = refused.reason.error
        let line = Answer.failure(id: .null, error: error) + [UInt8(ascii: "\n")]
        // The socket is new and its buffer empty, so the line fits.
        _ = line.withUnsafeBytes { send(refused.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        close(refused.descriptor)
        told(refused.user, error)
    }
}
