import JobModel
import NIOPosix
import Synchronization

/// A few threads for operations that block, shared between users.
///
/// Each transfer waits for one operation before it starts the next, so at most one is queued for each running transfer.
/// File systems of one user that do not answer block at most three quarters of the threads.
package struct FileQueue: Sendable {
    private final class Shared: Sendable {
        typealias Work = @Sendable () -> Void

        let threads: NIOThreadPool
        private let turns: Mutex<TurnQueue<Work>>

        init(threads: Int, perUser: Int) {
            self.threads = NIOThreadPool(numberOfThreads: threads)
            self.threads.start()
            turns = Mutex(TurnQueue(perUser: perUser, total: threads))
        }

        func run(_ work: @escaping Work, for user: UInt32) {
            turns.withLock { $0.append(work, for: user) }
            startNext()
        }

        private func startNext() {
            while let (user, work) = turns.withLock({ $0.next() }) {
                // After a shutdown the pool refuses; then the work runs here, as a caller may wait for it.
                threads.submit { _ in
                    work()
                    self.turns.withLock { $0.finish(user) }
                    self.startNext()
                }
            }
        }
    }

    static let threads = 8

    private let shared: Shared
    private var user: UInt32 = 0

    /// `isShared` says whether there are several users.
    init(isShared: Bool, threads: Int = Self.threads) {
        self.init(threads: threads, perUser: isShared ? threads * 3 / 4 : threads)
    }

    init(threads: Int, perUser: Int) { shared = Shared(threads: threads, perUser: perUser) }

    /// The same threads, for work on behalf of `user`.
    func of(_ user: UInt32) -> FileQueue {
        var queue = self
        queue.user = user
        return queue
    }

    /// Runs `body` on one of the threads and waits for it.
    package func run<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let outcome: Result<Value, Failure> = await withCheckedContinuation { continuation in
            shared.run({ continuation.resume(returning: Result { () throws(Failure) in try body() }) }, for: user)
        }
        return try outcome.get()
    }

    package func start(_ body: @escaping @Sendable () -> Void) { shared.run(body, for: user) }

    /// Ends the threads once they are idle, without waiting for that.
    func end() {
        shared.threads.shutdownGracefully { _ in }
    }

    func shutdown() async {
        // This fails only for the process's shared pools.
        try? await shared.threads.shutdownGracefully()
    }
}
