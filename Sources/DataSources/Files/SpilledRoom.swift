import JobModel
import Synchronization

/// How many bytes of bodies that are being sent, and of inputs of programs, stand in files, of each user.
///
/// They count as what a user has stored does: with it they take no more than `limits.storedPerUser`. Those of all users together
/// leave the disk as much room as downloads do.
final class SpilledBodies: Sendable {
    private let byUser = Mutex<[UInt32: Int64]>([:])

    /// Room for `size` bytes, where their user may have `room`; errors call them `name`.
    func admit(
        _ size: Int64, of user: UInt32, within room: Int64, as name: String = "body"
    ) throws(JobError) -> SpilledRoom {
        guard size <= room else {
            throw JobError(
                .tooLarge,
                "The \(name) of \(size) bytes cannot be kept, as there is room for \(max(0, room)) bytes more "
                    + "of your jobs; remove some that are over, then retry the job.")
        }
        let used = byUser.withLock { byUser -> Int64? in
            let used = byUser[user, default: 0]
            guard used.saturatingAdding(size) <= room else { return used }
            byUser[user] = used + size
            return nil
        }
        guard let used else { return SpilledRoom(size, of: user, in: self) }
        throw .withoutRoom(
            "What your jobs send and give to programs takes up \(used) bytes, and there is room for \(room); wait for some."
        )
    }

    fileprivate func release(_ size: Int64, of user: UInt32) {
        byUser.withLock { byUser in
            let left = byUser[user, default: 0] - size
            byUser[user] = left > 0 ? left : nil
        }
    }
}

/// What a body takes up until the last reference to this goes away.
final class SpilledRoom: Sendable {
    fileprivate let size: Int64
    private let user: UInt32
    private let bodies: SpilledBodies

    fileprivate init(_ size: Int64, of user: UInt32, in bodies: SpilledBodies) {
        self.size = size
        self.user = user
        self.bodies = bodies
    }

    deinit { bodies.release(size, of: user) }
}
