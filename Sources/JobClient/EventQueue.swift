import NIOCore

/// The notifications that wait for their reader.
///
/// Of a job's progress only the latest waits; everything else is kept, up to a bound in bytes. States: open, and ended,
/// which is terminal: what waits is still given out, nothing new is added.
struct EventQueue {
    private struct Key: Hashable {
        let watch: String
        let job: Int64
    }

    private let limit: Int
    private var waiting: CircularBuffer<JobEvent> = []
    private var size = 0
    /// How many were removed so far, which is the number of the first that waits.
    private var removed = 0
    /// The number of the last event that waits, by watch and job.
    private var last: [Key: Int] = [:]
    private var ending: Result<Void, JobClientError>?

    /// A queue of events whose lines have at most `limit` bytes together.
    init(limit: Int) {
        self.limit = limit
    }

    /// Adds an event; false where that would go past the bound.
    mutating func append(_ event: JobEvent) -> Bool {
        guard ending == nil else { return true }
        let key = Key(watch: event.watch, job: event.job)
        if let number = last[key], let merged = event.merging(waiting[offset: number - removed]) {
            size += event.size - waiting[offset: number - removed].size
            waiting[waiting.index(waiting.startIndex, offsetBy: number - removed)] = merged
            return true
        }
        guard size + event.size <= limit else { return false }
        last[key] = removed + waiting.count
        waiting.append(event)
        size += event.size
        return true
    }

    /// Accepts nothing new from now on.
    mutating func end(_ error: JobClientError?) {
        if ending == nil { ending = error.map { .failure($0) } ?? .success(()) }
    }

    /// The next event, or the end; nil where neither is there yet.
    mutating func next() -> Result<JobEvent?, JobClientError>? {
        guard let event = waiting.popFirst() else {
            defer {
                // An error is thrown once; after it the sequence is over.
                if case .failure = ending { ending = .success(()) }
            }
            return ending?.map { nil }
        }
        let key = Key(watch: event.watch, job: event.job)
        if last[key] == removed { last[key] = nil }
        removed += 1
        size -= event.size
        return .success(event)
    }
}
