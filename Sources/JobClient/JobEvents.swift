import Synchronization

/// The notifications of one connection, in the order in which they came.
///
/// They are for one reader. While it is slow, of the progress of each job only the latest waits, with the number of those
/// merged into it; changes of state are all kept. When more than ``JobClient/maximumWaitingBytes`` wait, the connection is
/// closed: the reader still gets what waits and then an error with the code `slowReader`.
///
/// The sequence ends after ``JobClient/close()`` and throws where the connection ends by itself.
public struct JobEvents: AsyncSequence, AsyncIteratorProtocol, Sendable {
    /// What the sequence throws.
    public typealias Failure = JobClientError

    /// The queue with the one reader that may wait for it.
    final class Storage: Sendable {
        fileprivate struct State {
            var queue: EventQueue
            var reader: CheckedContinuation<Result<JobEvent?, JobClientError>, Never>?

            /// Whom to resume with what, if that is possible now.
            mutating func handOver() -> (() -> Void)? {
                guard let reader, let next = queue.next() else { return nil }
                self.reader = nil
                return { reader.resume(returning: next) }
            }
        }

        fileprivate let state: Mutex<State>

        init(limit: Int) {
            state = Mutex(State(queue: EventQueue(limit: limit)))
        }

        /// Adds an event; false where too many wait.
        func append(_ event: JobEvent) -> Bool {
            let (isTaken, handOver) = state.withLock { state in
                (state.queue.append(event), state.handOver())
            }
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
                                .misuse, "Another task reads the notifications; one connection has one reader.")
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

    /// The next notification, or nil after the end or where the reading task is cancelled.
    public func next() async throws(JobClientError) -> JobEvent? { try await storage.next().get() }

    /// The reader's end of the notifications; there is one reader at a time.
    public func makeAsyncIterator() -> JobEvents { self }
}
