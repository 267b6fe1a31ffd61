import Dispatch
import Glibc
import Synchronization

/// Lets Ctrl-C (SIGINT) and SIGTERM end the program's wait, and no job.
final class Interruption: Sendable {
    private static let signals = [SIGINT, SIGTERM]

    private let farewell: Mutex<String>

    /// An interruption that says `farewell` until something else is set.
    init(farewell: String) {
        self.farewell = Mutex(farewell)
    }

    /// An interruption whose farewell says how to come back to these jobs by `verb`.
    convenience init(from verb: String, jobs: [Int64]) {
        // A list of very many ids would help nobody.
        let numbers = jobs.count <= 50 ? jobs.map(String.init).joined(separator: " ") : "ID.. (see deferctl list)"
        let subject = jobs.count == 1 ? "job \(numbers) goes on" : "the jobs go on"
        self.init(farewell: "Detached; \(subject). Come back with: deferctl \(verb) \(numbers)")
    }

    /// Sets what is said on an interruption from now on: how to come back.
    func set(farewell text: String) {
        farewell.withLock { $0 = text }
    }

    /// Runs `body` until it ends or a signal comes; then it is cancelled, and the farewell is thrown.
    ///
    /// A second signal ends the program at once.
    func run<Value: Sendable>(_ body: @Sendable @escaping () async throws -> Value) async throws -> Value {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let sources = Self.signals.map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler {
                signal(number, SIG_DFL)
                continuation.yield()
            }
            source.resume()
            return source
        }
        defer {
            for source in sources { source.cancel() }
            for number in Self.signals { signal(number, SIG_DFL) }
        }
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                for await _ in signals { return nil }
                return nil
            }
            defer { group.cancelAll() }
            if let value = try await group.next() ?? nil { return value }
            group.cancelAll()
            // What the body still shows on the screen is cleared before the farewell.
            _ = await group.nextResult()
            throw CommandFailure(.tryAgain, farewell.withLock { $0 })
        }
    }
}
