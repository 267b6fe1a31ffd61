import JobModel
import NIOPosix
import Synchronization

/// Where blocking file operations run: a few threads of their own, away from event loops and tasks, which users share.
///
/// Each transfer waits for one operation before it asks for the next, so no more are queued than transfers run. File
/// systems of one user that do not answer block three quarters of the threads at most.
struct FileQueue: Sendable {
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
                // The pool refuses only after shutdown, when waiting for the work would never end; then it runs here.
                threads.submit { _ in
                    work()
                    self.turns.withLock { $0.finish(user) }
                    self.startNext()
                }
            }
        }
    }

    static let threads = 8
    /// Those for requests and answers that take long.
    static let ownThreads = 4

    private let shared: Shared
    private let user: UInt32

    /// `isShared` says whether there is more than one user; then one has three quarters of the threads at most.
    init(isShared: Bool, threads: Int = Self.threads) {
        self.init(threads: threads, perUser: isShared ? threads * 3 / 4 : threads)
    }

    init(threads: Int, perUser: Int) {
        shared = Shared(threads: threads, perUser: perUser)
        user = 0
    }

    private init(_ shared: Shared, user: UInt32) {
        self.shared = shared
        self.user = user
    }

    /// The same threads, for what is done for `user`.
    func of(_ user: UInt32) -> FileQueue { FileQueue(shared, user: user) }

    /// Runs `body` on one of the threads.
    func run<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let outcome: Result<Value, Failure> = await withCheckedContinuation { continuation in
            shared.run({ continuation.resume(returning: Result { () throws(Failure) in try body() }) }, for: user)
        }
        return try outcome.get()
    }

    /// Runs `body` on one of the threads, without a task that waits for it.
    func start(_ body: @escaping @Sendable () -> Void) { shared.run(body, for: user) }

    /// Ends the threads once they have nothing more to do, without waiting for that.
    func end() {
        shared.threads.shutdownGracefully { _ in }
    }

    func shutdown() async {
        // It fails only where the pool cannot be stopped, as the process's shared ones.
        try? await shared.threads.shutdownGracefully()
    }
}
