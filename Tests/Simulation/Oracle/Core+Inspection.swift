import JobCore
import JobModel

/// The parts of a core's memory that the oracle compares.
extension Core {
    /// The rebuilt state on which two cores with the same knowledge must agree.
    struct Inspection {
        /// By queue or host, and owner.
        let slots: [String: [UInt32: Int]]
        let permits: [String: [UInt32: Int]]
        let runs: Set<RunID>
        let counts: [CountKey: CountValue]
        /// Stored bytes of each owner.
        let stored: [UInt32: Int64]
        let queues: [QueueStatus]
    }

    var inspection: Inspection {
        let slots = scheduler.queues.mapValues { $0.shares.mapValues(\.running).filter { $0.value > 0 } }
        return Inspection(
            slots: slots.filter { !$0.value.isEmpty }, permits: scheduler.hosts.uses,
            runs: Set(running.all.map(\.run)), counts: quotas.counts, stored: quotas.stored,
            queues: scheduler.names.map(status))
    }
}
