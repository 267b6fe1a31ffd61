import JobModel
import NIOPosix

/// Where blocking file operations run: a few threads of their own, away from event loops and tasks.
///
/// Each transfer waits for one operation before it asks for the next, so no more are queued than transfers run.
struct FileQueue: Sendable {
    private let pool: NIOThreadPool

    init(threads: Int = 8) {
        pool = NIOThreadPool(numberOfThreads: threads)
        pool.start()
    }

    /// Runs `body` on one of the threads.
    func run<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let outcome: Result<Value, Failure> = await withCheckedContinuation { continuation in
            // The pool refuses only after shutdown, when waiting for the work would never end; then it runs here.
            pool.submit { _ in
                continuation.resume(returning: Result { () throws(Failure) in try body() })
            }
        }
        return try outcome.get()
    }

    func shutdown() async {
        // It fails only where the pool cannot be stopped, as the process's shared ones.
        try? await pool.shutdownGracefully()
    }
}
