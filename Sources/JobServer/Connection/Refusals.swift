import Dispatch
import Glibc
import JobModel
import JobProtocol

/// Tells connections that are too many so, and closes them, on a thread of its own: that takes longer than to accept one, and
/// whoever connects waits in the kernel's queue behind all who came before.
///
/// On one thread with accepting, four clients that connect and go without a pause have another user's new connection answered 20
/// to 30 times as late, instead of less than twice (`soak floods 3 vanish`).
final class Refusals: Sendable {
    /// How many may wait, each with its descriptor, of which few may be left. Past that whoever accepts waits.
    private static let most = 32

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
        queue.async { [self] in
            let error = reason.error
            let line = Answer.failure(id: .null, error: error) + [UInt8(ascii: "\n")]
            // The socket is new and its buffer empty, so the line fits.
            _ = line.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            close(descriptor)
            told(user, error)
            room.signal()
        }
    }
}
