package import JobModel

/// What the daemon says of itself.
package struct ServerIdentity: Sendable {
    package var name = "deferd"
    package var version: String
    package var pid: Int
    package var startedAt: Timestamp

    package init(version: String, pid: Int, startedAt: Timestamp) {
        self.version = version
        self.pid = pid
        self.startedAt = startedAt
    }
}
