import JobCore
import JobModel
import Logging
import MetricsRegistry
import JobProtocol
import Synchronization

/// What all connections share: who is connected, and how many may be.
final class ServerState: Sendable {
    private struct State {
        var connections = 0
        var byUser: [UInt32: Int] = [:]
        /// A budget lives as long as anything is counted in it, also when its user has no connection any more.
        var budgets: [UInt32: WeakBudget] = [:]
        var warnings: [UInt32: Warnings] = [:]
    }

    /// What is written to the log of one user.
    private struct Warnings {
        var last: ContinuousClock.Instant
        var leftOut = 0
    }

    /// Users of whom it is remembered when there was a warning of them.
    private static let mostWarned = 1024

    private struct WeakBudget {
        weak var budget: UserBudget?
    }

    let identity: ServerIdentity
    private let startedAt = ContinuousClock.now
    /// Seconds since the daemon started.
    var uptime: Double { startedAt.duration(to: .now) / .seconds(1) }
    /// What is counted for administrators; nil where nothing is.
    let metrics: MetricsRegistry?
    let limits: ServerLimits
    private let state = Mutex(State())

    init(
        identity: ServerIdentity, limits: JobLimits, adminGroup: UInt32? = nil, metrics: MetricsRegistry? = nil
    ) {
        self.identity = identity
        self.limits = ServerLimits(limits, adminGroup: adminGroup)
        self.metrics = metrics
    }

    /// Has other limits hold, for connections that are open too; those that are too many now stay.
    func configure(_ limits: JobLimits, adminGroup: UInt32?) {
        self.limits.configure(limits, adminGroup: adminGroup)
        for budget in state.withLock({ $0.budgets.values.compactMap(\.budget) }) {
            budget.configure(limit: limits.memoryPerUser, outbound: limits.outbound)
        }
    }

    var connectionCount: Int { state.withLock(\.connections) }

    /// Connections of one user.
    func connectionCount(of uid: UInt32) -> Int { state.withLock { $0.byUser[uid, default: 0] } }

    /// Why there cannot be one more connection, with how many there are.
    enum Refusal: Sendable, Equatable {
        case tooManyOfUser(Int)
        case tooMany(Int)

        var error: ProtocolError {
            let reason =
                switch self {
                case .tooManyOfUser(let count): "You have \(count) connections"
                case .tooMany(let count): "There are \(count) connections"
                }
            return ProtocolError(
                .busy, "\(reason), and more are not allowed; close one or try again later.",
                [JSONObject.Member(name: "retryAfter", value: 1)])
        }
    }

    /// Admits a connection, or says why not.
    func enter(_ uid: UInt32) -> Refusal? {
        let (most, mostOwn) = (limits.connections, limits.connectionsPerUser)
        return state.withLock { state in
            let own = state.byUser[uid, default: 0]
            guard state.connections < most else { return .tooMany(state.connections) }
            guard own < mostOwn else { return .tooManyOfUser(own) }
            state.connections += 1
            state.byUser[uid] = own + 1
            return nil
        }
    }

    /// The budget of a user, over all connections.
    func budget(of uid: UInt32) -> UserBudget {
        state.withLock { state in
            if let budget = state.budgets[uid]?.budget { return budget }
            let budget = UserBudget(limit: limits.memoryPerUser)
            state.budgets = state.budgets.filter { $0.value.budget != nil }
            state.budgets[uid] = WeakBudget(budget: budget)
            return budget
        }
    }

    /// Whether a warning of a user may go to the log: one a second does, so that no user can push others' lines out of it.
    /// Gives how many were left out since the last one, or nil where this one is to be.
    func warns(of uid: UInt32, at now: ContinuousClock.Instant = .now) -> Int? {
        state.withLock { state in
            if let last = state.warnings[uid]?.last, last.duration(to: now) < .seconds(1) {
                state.warnings[uid]?.leftOut += 1
                return nil
            }
            let leftOut = state.warnings[uid]?.leftOut ?? 0
            if state.warnings.count >= Self.mostWarned {
                state.warnings = state.warnings.filter { $0.value.last.duration(to: now) < .seconds(1) }
            }
            state.warnings[uid] = Warnings(last: now)
            return leftOut
        }
    }

    /// Writes a warning of a user to the log, or counts it where there was one of them in the last second.
    func warn(
        _ event: CatalogEvent, _ message: Logger.Message, of uid: UInt32, _ metadata: Logger.Metadata = [:],
        to logger: Logger
    ) {
        guard let leftOut = warns(of: uid) else { return }
        var metadata = metadata
        metadata["event"] = "\(event.rawValue)"
        metadata["uid"] = "\(uid)"
        if leftOut > 0 { metadata["leftOut"] = "\(leftOut)" }
        logger.warning(message, metadata: metadata)
    }

    func leave(_ uid: UInt32) {
        state.withLock { state in
            state.connections -= 1
            let own = state.byUser[uid, default: 1] - 1
            state.byUser[uid] = own > 0 ? own : nil
        }
    }
}
