import JobModel

/// Who asks.
package struct Caller: Sendable, Hashable {
    package let uid: UInt32
    /// Root, the daemon's own user, or a member of the administrators' group: sees and changes every job.
    package let isAdmin: Bool

    package init(uid: UInt32, isAdmin: Bool) {
        self.uid = uid
        self.isAdmin = isAdmin
    }

    func sees(_ job: Job) -> Bool { isAdmin || job.owner == uid }
}
