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

            /// Resumes the reader if something waits for it.
            mutating func handOver() {
                guard let reader, let next = queue.next() else { return }
                self.reader = nil
                reader.resume(returning: next)
            }
        }

        private let state: Mutex<State>

        init(limit: Int) { state = Mutex(State(queue: EventQueue(limit: limit))) }

        /// Adds an event; returns false if too many wait.
        func append(_ event: JobEvent) -> Bool {
            state.withLock { state in
                defer { state.handOver() }
                return state.queue.append(event)
            }
        }

        func end(_ error: JobClientError?) {
            state.withLock { state in
                state.queue.end(error)
                state.handOver()
            }
        }

        fileprivate func next() async -> Result<JobEvent?, JobClientError> {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    state.withLock { state in
                        if state.reader != nil {
                            let error = JobClientError(
                                .misuse, "Another task reads the notifications; a connection has one reader.")
                            return continuation.resume(returning: .failure(error))
                        }
                        if Task.isCancelled { return continuation.resume(returning: .success(nil)) }
                        state.reader = continuation
                        state.handOver()
                    }
                }
            } onCancel: {
                state.withLock { state in
                    state.reader?.resume(returning: .success(nil))
                    state.reader = nil
                }
            }
        }
    }

    let storage: Storage

    /// The next notification, or nil at the end, or if the task is cancelled.
    public func next() async throws(JobClientError) -> JobEvent? { try await storage.next().get() }

    /// The iterator, which is this sequence itself.
    public func makeAsyncIterator() -> JobEvents { self }
}
