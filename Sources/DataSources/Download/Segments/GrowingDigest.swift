import NIOCore
import Synchronization

/// The digest of a file as far as it has no holes, made of bytes as they are written where they continue it.
///
/// Whoever begins a piece has the digest to itself until it ends that.
final class GrowingDigest: Sendable {
    private struct State {
        var hash = SHA256Digest()
        var position: Int64 = 0
        var isBusy = false
    }

    private let state = Mutex(State())

    /// Bytes from the first on that it is of.
    var position: Int64 { state.withLock(\.position) }

    /// The digest so far and its end, to be continued; nil while something else does, or where it ends before `least`.
    func begin(from least: Int64 = 0) -> (hash: SHA256Digest, position: Int64)? {
        state.withLock { state in
            guard !state.isBusy, state.position >= least else { return nil }
            state.isBusy = true
            return (state.hash, state.position)
        }
    }

    /// Keeps what was begun, which now ends at `position`; without a hash it is as it was before.
    func end(_ hash: SHA256Digest?, at position: Int64) {
        state.withLock { state in
            state.isBusy = false
            guard let hash else { return }
            (state.hash, state.position) = (hash, position)
        }
    }

    /// The digest in hexadecimal.
    var text: String { state.withLock { $0.hash.hexadecimal } }
}
