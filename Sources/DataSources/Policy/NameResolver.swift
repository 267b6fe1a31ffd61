import DeferredKit
import JobModel
import NIOCore

/// Resolves names on threads of its own, as the system's resolver can block for minutes and cannot be told to stop.
///
/// A user has at most ``perUser`` of them, and users have their turns. Whoever waits for a name can give up at any time; a
/// lookup that nobody waits for by its turn is not begun.
package final class NameResolver: Sendable {
    /// The system's resolver, which blocks.
    package typealias Lookup = @Sendable (_ name: String) -> Result<[IPAddress], Failure>

    /// Why a name has no address, in the resolver's words.
    package struct Failure: Error {
        let reason: String

        package init(reason: String) {
            self.reason = reason
        }
    }

    /// Lookups of one user, and of all, at a time.
    static let perUser = 4
    static let total = 16

    private let queue = FileQueue(threads: total, perUser: perUser)
    private let lookup: Lookup

    init(lookup: @escaping Lookup) {
        self.lookup = lookup
    }

    /// The addresses of `name`, at least one; no later than the transfer is interrupted or cancelled, or `limit` passes.
    func addresses(
        of name: String, for user: UInt32, _ control: TransferControl, limit: TransferControl.Limit?
    ) async throws(JobError) -> [IPAddress] {
        try await control.wait(limit: limit) { promise in
            queue.of(user).start { [lookup] in
                guard !promise.deferred.isResolved else { return }
                promise.resolve(
                    lookup(name).mapError { failure in
                        JobError(
                            .dns, "The name \(name) could not be resolved (\(failure.reason)); check its spelling.",
                            retryable: true)
                    })
            }
        }
    }

    /// Ends the threads, without waiting for those that a lookup holds up.
    func end() { queue.end() }
}
