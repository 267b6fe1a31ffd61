import JobCore
package import JobModel
import JobProtocol
package import Logging
package import Synchronization

/// The connected users, and what all connections know of the daemon.
package final class ServerState: Sendable {
    private struct User {
        var connections = 0
        let budget: UserBudget
        var lastWarning: ContinuousClock.Instant?
    }

    private struct State {
        var adminGroup: UInt32?
        var users: [UInt32: User] = [:]
        var connections: Int { users.values.reduce(0) { $0 + $1.connections } }
    }

    /// More users are remembered only while they are connected.
    private static let mostRemembered = 1024

    let version: String
    let startedAt: Timestamp
    let logger: Logger
    private let start = ContinuousClock.now
    /// Seconds since the daemon started.
    var uptime: Double { start.duration(to: .now) / .seconds(1) }
    /// Why the last reload applied nothing; nil if it did.
    package let refusedConfiguration = Mutex<(reason: String, at: Timestamp)?>(nil)
    private let state: Mutex<State>

    package init(version: String, startedAt: Timestamp, adminGroup: UInt32?, logger: Logger) {
        self.version = version
        self.startedAt = startedAt
        self.logger = logger
        state = Mutex(State(adminGroup: adminGroup))
    }

    var adminGroup: UInt32? { state.withLock(\.adminGroup) }

    /// Applies new settings to the next line, call and connection. No client is disconnected, even if there are too many now.
    package func configure(_ limits: JobLimits, adminGroup: UInt32?) {
        refusedConfiguration.withLock { $0 = nil }
        let users = state.withLock { state in
            state.adminGroup = adminGroup
            return Array(state.users.values)
        }
        for user in users { user.budget.configure(limit: limits.memoryPerUser, outbound: limits.outbound) }
    }

    // MARK: - Connections

    /// The users that are connected, or were not long ago.
    var users: Set<UInt32> { state.withLock { Set($0.users.keys) } }
    /// The bytes that a user makes the daemon hold in memory.
    func memory(of uid: UInt32) -> Int { state.withLock { $0.users[uid]?.budget }?.used ?? 0 }

    /// The open connections of a user, or of all.
    func connectionCount(of uid: UInt32? = nil) -> Int {
        state.withLock { state in uid.map { state.users[$0]?.connections ?? 0 } ?? state.connections }
    }

    /// Admits a connection and returns its user's budget, or throws the reason why it is refused.
    func enter(_ uid: UInt32, within limits: JobLimits) throws(ProtocolError) -> UserBudget {
        try state.withLock { (state) throws(ProtocolError) in
            if state.users[uid] == nil, state.users.count >= Self.mostRemembered {
                // What a closed connection still holds counts until it is released.
                state.users = state.users.filter { $0.value.connections > 0 || $0.value.budget.used > 0 }
            }
            var user = state.users[uid] ?? User(budget: UserBudget(limit: limits.memoryPerUser))
            defer { state.users[uid] = user }
            guard state.connections < limits.connections else { throw Self.refusal("There are \(state.connections)") }
            guard user.connections < limits.connectionsPerUser else {
                throw Self.refusal("You have \(user.connections)")
            }
            user.connections += 1
            return user.budget
        }
    }

    private static func refusal(_ count: String) -> ProtocolError {
        .busy("\(count) connections, and more are not allowed; close one or try again later.", retryAfter: 1)
    }

    func leave(_ uid: UInt32) { state.withLock { $0.users[uid]?.connections -= 1 } }

    // MARK: - Log

    /// Whether the log takes a warning about a user: one per second, so that no user can push others' lines out of it.
    func warns(of uid: UInt32, at now: ContinuousClock.Instant = .now) -> Bool {
        state.withLock { state in
            if let last = state.users[uid]?.lastWarning, last.duration(to: now) < .seconds(1) { return false }
            state.users[uid]?.lastWarning = now
            return true
        }
    }

    func warn(_ event: CatalogEvent, _ message: Logger.Message, of uid: UInt32, _ metadata: Logger.Metadata = [:]) {
        guard warns(of: uid) else { return }
        logger.warning(message, metadata: metadata.merging(["event": "\(event.name)", "uid": "\(uid)"]) { $1 })
    }
}
