import JobModel
import Synchronization

/// The limits that hold for the next line, call or connection; a reload changes them at any moment, and every event loop reads
/// them.
///
/// Those that each call reads are atomic by themselves; nothing relies on two of them being of the same moment.
final class ServerLimits: Sendable {
    private let lineBytes: Atomic<Int>
    private let lineValueBytes: Atomic<Int>
    private let outboundBytes: Atomic<Int>
    private let inFlightCalls: Atomic<Int>
    /// The administrators' group, or -1.
    private let group: Atomic<Int64>
    private let all: Mutex<JobLimits>

    init(_ limits: JobLimits, adminGroup: UInt32?) {
        lineBytes = Atomic(limits.line)
        lineValueBytes = Atomic(limits.lineValues)
        outboundBytes = Atomic(limits.outbound)
        inFlightCalls = Atomic(limits.inFlight)
        group = Atomic(adminGroup.map(Int64.init) ?? -1)
        all = Mutex(limits)
    }

    func configure(_ limits: JobLimits, adminGroup: UInt32?) {
        all.withLock { $0 = limits }
        lineBytes.store(limits.line, ordering: .relaxed)
        lineValueBytes.store(limits.lineValues, ordering: .relaxed)
        outboundBytes.store(limits.outbound, ordering: .relaxed)
        inFlightCalls.store(limits.inFlight, ordering: .relaxed)
        group.store(adminGroup.map(Int64.init) ?? -1, ordering: .relaxed)
    }

    var line: Int { lineBytes.load(ordering: .relaxed) }
    /// What the values of one line may take in memory.
    var lineValues: Int { lineValueBytes.load(ordering: .relaxed) }
    var outbound: Int { outboundBytes.load(ordering: .relaxed) }
    var inFlight: Int { inFlightCalls.load(ordering: .relaxed) }
    var adminGroup: UInt32? { UInt32(exactly: group.load(ordering: .relaxed)) }
    var connections: Int { all.withLock(\.connections) }
    var connectionsPerUser: Int { all.withLock(\.connectionsPerUser) }
    var memoryPerUser: Int { all.withLock(\.memoryPerUser) }
}
