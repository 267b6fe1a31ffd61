import NIOCore

/// The notifications that wait for their reader, with a limit in bytes. Only the latest progress of each job waits.
struct EventQueue {
    private struct Key: Hashable {
        let watch: String
        let job: Int64
        let isOutput: Bool

        init(_ event: JobEvent) { (watch, job, isOutput) = (event.watch, event.job, event.isOutput) }
    }

    private let limit: Int
    private var waiting: CircularBuffer<JobEvent> = []
    private var size = 0
    /// The number of events removed so far, which is the number of the first that waits.
    private var removed = 0
    /// The number of the last waiting event of each job in each watch, and of that about its output.
    private var last: [Key: Int] = [:]
    private var ending: Result<Void, JobClientError>?

    init(limit: Int) { self.limit = limit }

    /// Adds an event; returns false if that would exceed the limit.
    mutating func append(_ event: JobEvent) -> Bool {
        guard ending == nil else { return true }
        let key = Key(event)
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

    /// Ends the queue: waiting events are still returned, new ones are ignored.
    mutating func end(_ error: JobClientError?) {
        if ending == nil { ending = error.map { .failure($0) } ?? .success(()) }
    }

    /// The next event, or nil inside the result at the end; nil if neither is there yet.
    mutating func next() -> Result<JobEvent?, JobClientError>? {
        guard let event = waiting.popFirst() else {
            defer {
                // An error is thrown once; then the sequence is over.
                if case .failure = ending { ending = .success(()) }
            }
            return ending?.map { nil }
        }
        let key = Key(event)
        if last[key] == removed { last[key] = nil }
        removed += 1
        size -= event.size
        return .success(event)
    }
}
