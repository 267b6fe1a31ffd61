import JobCore
import JobModel

/// The requests to retry one job that have no answer yet, and the retries of it that are stored, so that each answer is compared
/// with a retry of its own: one that became durable after it was asked for and that no other request was answered by.
///
/// Several can be open at once. Which of them a stored retry belongs to does not show, so an answer claims the earliest that
/// may be its own: that leaves the later ones to requests that came later.
struct Retries {
    private struct Request {
        let point: Job.RetryPoint
        /// The retries that were stored when it was asked for.
        let before: Int
    }

    private var open: [RequestID: Request] = [:]
    private var stored = 0
    /// Stored retries by which no request was answered yet, by number.
    private var unclaimed: [Int] = []
    /// Children were removed for a retry, so that it goes on whatever is answered.
    private(set) var hasBegun = false

    /// Whether a retry may become durable.
    var isDue: Bool { open.count > unclaimed.count || hasBegun }

    /// Whether whatever retry becomes durable now has to begin with the first link.
    var isFromStart: Bool { !hasBegun && open.values.allSatisfy { $0.point == .start } }

    mutating func asks(_ id: RequestID, from point: Job.RetryPoint) {
        open[id] = Request(point: point, before: stored)
    }

    mutating func begins() { hasBegun = true }

    mutating func isStored() {
        stored += 1
        unclaimed.append(stored)
        hasBegun = false
        forgetUnclaimed()
    }

    mutating func isRefused(_ id: RequestID) {
        open[id] = nil
        forgetUnclaimed()
    }

    /// Whether a retry is stored that `id` can be answered by.
    mutating func isAnswered(_ id: RequestID) -> Bool {
        defer { forgetUnclaimed() }
        guard let request = open.removeValue(forKey: id),
            let index = unclaimed.firstIndex(where: { $0 > request.before })
        else { return false }
        unclaimed.remove(at: index)
        return true
    }

    private mutating func forgetUnclaimed() {
        if open.isEmpty { unclaimed = [] }
    }

    /// The daemon is gone, and with it what was asked.
    mutating func forget() {
        open = [:]
        unclaimed = []
        hasBegun = false
    }
}
