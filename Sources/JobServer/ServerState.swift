import JobCore
import JobModel
import JobProtocol
import Logging
import Synchronization

/// The connected users, and what all connections know of the daemon.
final class ServerState: Sendable {
    private struct User {
        var connections = 0
        let budget: UserBudget
        var lastWarning: ContinuousClock.Instant?
    }

    private struct State {
        var adminGroup: UInt32?
        var connections = 0
        var users: [UInt32: User] = [:]
        var refusedConfiguration: RefusedConfiguration?
    }

    /// Why the last reload applied nothing.
    typealias RefusedConfiguration = (reason: String, at: Timestamp)

    /// More users are remembered only while they are connected.
    private static let mostRemembered = 1024

    let version: String
    let startedAt: Timestamp
    private let start = ContinuousClock.now
    /// Seconds since the daemon started.
    var uptime: Double { start.duration(to: .now) / .seconds(1) }
    private let state: Mutex<State>

    init(version: String, startedAt: Timestamp, adminGroup: UInt32?) {
        self.version = version
        self.startedAt = startedAt
        state = Mutex(State(adminGroup: adminGroup))
    }

    var adminGroup: UInt32? { state.withLock(\.adminGroup) }

    /// Applies new limits to open connections too; if there are too many now, they stay.
    func configure(_ limits: JobLimits, adminGroup: UInt32?) {
        let users = state.withLock { state in
            state.adminGroup = adminGroup
            return Array(state.users.values)
        }
        for user in users { user.budget.configure(limit: limits.memoryPerUser, outbound: limits.outbound) }
    }

    /// Nil if the configuration of the last reload was applied.
    var refusedConfiguration: RefusedConfiguration? {
        get { state.withLock(\.refusedConfiguration) }
        set { state.withLock { $0.refusedConfiguration = newValue } }
    }

    // MARK: - Connections

    /// The users that are connected, or were not long ago.
    var users: Set<UInt32> { state.withLock { Set($0.users.keys) } }
    /// The bytes that a user makes the daemon hold in memory.
    func memory(of uid: UInt32) -> Int { state.withLock { $0.users[uid]?.budget }?.used ?? 0 }

    var connectionCount: Int { state.withLock(\.connections) }

    func connectionCount(of uid: UInt32) -> Int { state.withLock { $0.users[uid]?.connections ?? 0 } }

    /// Admits a connection and returns its user's budget, or throws the reason why it is refused.
    func enter(_ uid: UInt32, within limits: JobLimits) throws(ProtocolError) -> UserBudget {
        let entered = state.withLock { state -> Result<UserBudget, ProtocolError> in
            if state.users[uid] == nil, state.users.count >= Self.mostRemembered {
                // What a closed connection still holds counts until it is released.
                state.users = state.users.filter { $0.value.connections > 0 || $0.value.budget.used > 0 }
            }
            var user = state.users[uid] ?? User(budget: UserBudget(limit: limits.memoryPerUser))
            defer { state.users[uid] = user }
            guard state.connections < limits.connections else {
                return .failure(Self.refusal("There are \(state.connections)"))
            }
            guard user.connections < limits.connectionsPerUser else {
                return .failure(Self.refusal("You have \(user.connections)"))
            }
            state.connections += 1
            user.connections += 1
            return .success(user.budget)
        }
        return try entered.get()
    }

    private static func refusal(_ count: String) -> ProtocolError {
        .busy("\(count) connections, and more are not allowed; close one or try again later.", retryAfter: 1)
    }

    func leave(_ uid: UInt32) {
        state.withLock { state in
            state.connections -= 1
            state.users[uid]?.connections -= 1
        }
    }

    // MARK: - Log

    /// Whether the log takes a warning about a user: one per second, so that no user can push others' lines out of it.
    func warns(of uid: UInt32, at now: ContinuousClock.Instant = .now) -> Bool {
        state.withLock { state in
            if let last = state.users[uid]?.lastWarning, last.duration(to: now) < .seconds(1) { return false }
            state.users[uid]?.lastWarning = now
            return true
        }
    }

    func warn(
        _ event: CatalogEvent, _ message: Logger.Message, of uid: UInt32, _ metadata: Logger.Metadata = [:],
        to logger: Logger
    ) {
        guard warns(of: uid) else { return }
        logger.warning(
            message, metadata: metadata.merging(["event": "\(event.name)", "uid": "\(uid)"]) { $1 })
    }
}
