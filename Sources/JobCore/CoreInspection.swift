package import JobModel

/// What the core has in memory, for the simulator and tests, which check that it is bounded and that nothing leaks.
package struct CoreInspection: Sendable {
    package var residentJobs = 0
    /// Jobs that wait in the middle of their chains and are in the store only.
    package var restingJobs = 0
    /// Jobs remembered as they left, while questions to the store are open.
    package var departures = 0
    /// Entries in the windows of ready jobs.
    package var windowEntries = 0
    package var slots = 0
    /// Jobs that run under the limit of a host.
    package var hostConnections = 0
    /// Lists without a parent that are open.
    package var openLists = 0
    /// Lists that wait for children.
    package var joins = 0
    package var subscriptions = 0
    package var waits = 0
    package var timers = 0
    /// Jobs that wait for their owners' turns.
    package var waitingForTurns = 0
    package var pendingReads = 0
    package var pendingWrites = 0
    package var runs = 0
    /// Jobs in submissions and lists that are being stored.
    package var submitting = 0
    package var storageFails = false
}

extension JobCore {
    /// Jobs that the window of one owner in one queue keeps, those aside that must stay.
    package static var windowSize: Int { ReadyWindow.size * 2 }

    package var inspection: CoreInspection {
        var inspection = CoreInspection()
        inspection.residentJobs = table.count
        inspection.restingJobs = resting.count
        inspection.departures = table.departureCount
        inspection.windowEntries = scheduler.windowEntries
        inspection.slots = scheduler.running
        inspection.openLists = scheduler.openLists
        inspection.hostConnections = scheduler.permits - inspection.openLists
        inspection.joins = lists.count
        inspection.subscriptions = subscriptions.count(of: nil)
        inspection.waits = waits.count
        inspection.timers = timers.count + wallTimers.count
        inspection.waitingForTurns = waitingForTurns
        inspection.pendingReads = table.openReads
        inspection.pendingWrites = pendingWrites
        inspection.runs = runs.count + abandoned.count
        inspection.submitting = submitting.all
        inspection.storageFails = storageFailure != nil
        return inspection
    }

    /// The jobs in memory, by id.
    package func inspectJobs() -> [JobID] { table.all.map(\.job.id) }

    /// Slots in use, by queue and owner, in order.
    package func inspectSlots() -> [(queue: String, owner: UInt32, used: Int)] {
        scheduler.names.flatMap { name in
            scheduler.running(in: name).sorted { $0.key < $1.key }.map { (name, $0.key, $0.value) }
        }
    }

    /// Connections of each host that an owner's jobs have, those that wait for their turn among them.
    package func inspectHostShares() -> [String: [UInt32: Int]] {
        scheduler.shares.reduce(into: [:]) { shares, entry in
            if case .host(let host) = entry.key { shares[host] = entry.value }
        }
    }

    /// Jobs that run under the limit of each host, in order.
    package func inspectHosts() -> [(host: String, used: Int)] {
        scheduler.keys.compactMap { key, count in
            if case .host(let host) = key { (host: host, used: count) } else { nil }
        }.sorted { $0.host < $1.host }
    }
}
