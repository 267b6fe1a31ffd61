import Synchronization

/// The notifications of one connection, in order, for one reader.
///
/// If the reader is slow, only the latest progress of each job waits, with the number of reports merged into it; all changes
/// of state wait. If more than ``JobClient/maximumWaitingBytes`` wait, the connection is closed: the reader still gets the
/// waiting notifications, and then an error with the code `slowReader`.
///
/// The sequence ends after ``JobClient/close()``, and throws if the connection ends by itself.
public struct JobEvents: AsyncSequence, AsyncIteratorProtocol, Sendable {
    /// The type of error that the sequence throws.
    public typealias Failure = JobClientError

    /// The queue, and its reader while that waits.
    final class Storage: Sendable {
        private struct State {
            var queue: EventQueue
            var reader: CheckedContinuation<Result<JobEvent?, JobClientError>, Never>?

            /// Resumes the reader, once the lock is released.
            mutating func handOver() -> (() -> Void)? {
                guard let reader, let next = queue.next() else { return nil }
                self.reader = nil
                return { reader.resume(returning: next) }
            }
        }

        private let state: Mutex<State>

        init(limit: Int) { state = Mutex(State(queue: EventQueue(limit: limit))) }

        /// Adds an event; returns false if too many wait.
        func append(_ event: JobEvent) -> Bool {
            let (isTaken, handOver) = state.withLock { ($0.queue.append(event), $0.handOver()) }
            handOver?()
            return isTaken
        }

        func end(_ error: JobClientError?) {
            let handOver = state.withLock { state in
                state.queue.end(error)
                return state.handOver()
            }
            handOver?()
        }

        fileprivate func next() async -> Result<JobEvent?, JobClientError> {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let handOver: (() -> Void)? = state.withLock { state in
                        guard state.reader == nil else {
                            let error = JobClientError(
                                .misuse, "Another task reads the notifications; a connection has one reader.")
                            return { continuation.resume(returning: .failure(error)) }
                        }
                        if Task.isCancelled { return { continuation.resume(returning: .success(nil)) } }
                        state.reader = continuation
                        return state.handOver()
                    }
                    handOver?()
                }
            } onCancel: {
                let reader = state.withLock { state in
                    defer { state.reader = nil }
                    return state.reader
                }
                reader?.resume(returning: .success(nil))
            }
        }
    }

    let storage: Storage

    /// The next notification, or nil at the end, or if the task is cancelled.
    public func next() async throws(JobClientError) -> JobEvent? { try await storage.next().get() }

    /// The iterator, which is this sequence itself.
    public func makeAsyncIterator() -> JobEvents { self }
}
