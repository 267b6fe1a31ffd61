import NIOCore
import Synchronization

/// The notifications of one connection, in order, for one reader.
///
/// If the reader is slow, only the latest progress of each job waits, with the number of reports merged into it; all changes
/// of state wait. If more than ``JobClient/maximumWaitingBytes`` wait, the connection is closed: the reader still gets the
/// waiting notifications, and then an error with the code `slowReader`.
///
/// The sequence ends after ``JobClient/close()``, and throws if the connection ends by itself.
public final class JobEvents: AsyncSequence, AsyncIteratorProtocol, Sendable {
    /// The type of error that the sequence throws.
    public typealias Failure = JobClientError

    private let queue: Mutex<EventQueue>

    init(limit: Int) { queue = Mutex(EventQueue(limit: limit)) }

    /// Adds an event; returns false if too many wait.
    func append(_ event: JobEvent) -> Bool { queue.withLock { $0.append(event) } }

    func end(_ error: JobClientError?) { queue.withLock { $0.end(error) } }

    /// The next notification, or nil at the end, or if the task is cancelled.
    public func next() async throws(JobClientError) -> JobEvent? {
        let next: Result<JobEvent?, JobClientError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.withLock { queue in
                    if queue.reader != nil {
                        let error = JobClientError(
                            .misuse, "Another task reads the notifications; a connection has one reader.")
                        return continuation.resume(returning: .failure(error))
                    }
                    if Task.isCancelled { return continuation.resume(returning: .success(nil)) }
                    queue.reader = continuation
                    queue.handOver()
                }
            }
        } onCancel: {
            queue.withLock { queue in
                queue.reader?.resume(returning: .success(nil))
                queue.reader = nil
            }
        }
        return try next.get()
    }

    /// The iterator, which is this sequence itself.
    public func makeAsyncIterator() -> JobEvents { self }
}

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
    /// The reader, while it waits.
    var reader: CheckedContinuation<Result<JobEvent?, JobClientError>, Never>?

    init(limit: Int) { self.limit = limit }

    /// Adds an event; returns false if that would exceed the limit.
    mutating func append(_ event: JobEvent) -> Bool {
        guard ending == nil else { return true }
        defer { handOver() }
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
        handOver()
    }

    /// Resumes the reader if something waits for it.
    mutating func handOver() {
        guard let reader, let next = self.next() else { return }
        self.reader = nil
        reader.resume(returning: next)
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
