import NIOCore
import Synchronization

/// The requests to an origin in order; tests can wait for a number of them.
package final class OriginLog: Sendable {
    /// One request.
    package struct Entry: Sendable {
        package let method: String
        /// Path and query, unchanged.
        package let target: String
        /// By lower-case name; of repeated fields the last.
        package let headers: [String: String]
        package let body: [UInt8]

        /// The target without its query.
        package var path: String { String(target.prefix { $0 != "?" }) }

        /// The requested range, ending at `Int.max` if it is open; nil without one.
        package var range: (start: Int, last: Int)? {
            guard let text = headers["range"], text.hasPrefix("bytes=") else { return nil }
            let ends = text.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
            guard ends.count == 2, let start = Int(ends[0]) else { return nil }
            if ends[1].isEmpty { return (start, .max) }
            return Int(ends[1]).flatMap { $0 < start ? nil : (start, $0) }
        }
    }

    private struct Waiter {
        let path: String?
        let count: Int
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var entries: [Entry] = []
        var waiters: [Waiter] = []

        func count(_ path: String?) -> Int {
            entries.count { path == nil || $0.path == path }
        }
    }

    private let state = Mutex(State())

    /// All requests so far.
    package var entries: [Entry] { state.withLock { $0.entries } }

    /// The requests for `path`, or all.
    package func count(_ path: String? = nil) -> Int { state.withLock { $0.count(path) } }

    /// The last request for `path`.
    package func last(_ path: String) -> Entry? { entries.last { $0.path == path } }

    /// Waits until `path`, or whatever it is, was asked for `count` times in all.
    package func reaches(_ count: Int, _ path: String? = nil) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.count(path) >= count { return true }
                state.waiters.append(Waiter(path: path, count: count, continuation: continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    func append(_ entry: Entry) {
        let due = state.withLock { state in
            state.entries.append(entry)
            let waiters = state.waiters
            state.waiters = waiters.filter { state.count($0.path) < $0.count }
            return waiters.filter { state.count($0.path) >= $0.count }
        }
        for waiter in due { waiter.continuation.resume() }
    }
}
