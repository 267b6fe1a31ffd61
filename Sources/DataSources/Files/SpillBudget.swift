import JobModel
import Synchronization

/// Bounds the bytes that request bodies and inputs of programs take in files, for each user.
///
/// Together with a user's stored jobs they may take `limits.storedPerUser`.
final class SpillBudget: Sendable {
    private let byUser = Mutex<[UInt32: Int64]>([:])

    /// Leases `size` bytes of the `room` that a user has left; error messages call the bytes `name`.
    func lease(_ size: Int64, of user: UInt32, within room: Int64, for name: String) throws(JobError) -> Lease {
        guard size <= room else {
            throw JobError(
                .tooLarge,
                "The \(name) of \(size) bytes cannot be kept: your jobs have room for \(max(0, room)) more bytes; "
                    + "remove finished jobs, then retry the job.")
        }
        let used = byUser.withLock { byUser -> Int64? in
            let used = byUser[user, default: 0]
            guard used.saturatingAdding(size) <= room else { return used }
            byUser[user] = used + size
            return nil
        }
        guard let used else {
            return Lease(size) { [self] size in
                byUser.withLock { $0[user] = $0[user].flatMap { $0 > size ? $0 - size : nil } }
            }
        }
        throw .withoutRoom(
            "Request bodies and inputs of programs of your jobs take \(used) of \(room) bytes; wait for some to be sent."
        )
    }
}
