import Dispatch
import Glibc
import Synchronization

/// Lets Ctrl-C (SIGINT) and SIGTERM end the program's wait, while the jobs go on.
final class Interruption: Sendable {
    private let farewell: Mutex<String>

    init(farewell: String) { self.farewell = Mutex(farewell) }

    /// An interruption whose farewell says how to return to these jobs by `verb`.
    convenience init(from verb: String, jobs: [Int64]) {
        // A list of a thousand ids would not help.
        let numbers = jobs.count <= 50 ? jobs.map(String.init).joined(separator: " ") : "ID.. (see deferctl list)"
        let subject = jobs.count == 1 ? "job \(numbers) goes on" : "the jobs go on"
        self.init(farewell: "Detached; \(subject). Come back with: deferctl \(verb) \(numbers)")
    }

    func set(farewell text: String) { farewell.withLock { $0 = text } }

    /// Runs `body`; a signal cancels it and throws the farewell. A second signal ends the program at once.
    func run<Value: Sendable>(_ body: @Sendable @escaping () async throws -> Value) async throws -> Value {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let sources = SignalSources([SIGINT, SIGTERM]) { number in
            signal(number, SIG_DFL)
            continuation.yield()
        }
        defer { sources.cancel() }
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                for await _ in signals { return nil }
                return nil
            }
            defer { group.cancelAll() }
            if let value = try await group.next() ?? nil { return value }
            group.cancelAll()
            // The body clears the screen before the farewell is shown.
            _ = await group.nextResult()
            throw CommandFailure(.tryAgain, farewell.withLock { $0 })
        }
    }
}

/// Signals that call a handler instead of ending the program, until they are cancelled.
struct SignalSources {
    private let sources: [(number: Int32, source: any DispatchSourceSignal, before: sighandler_t?)]

    init(_ numbers: [Int32], _ handle: @escaping @Sendable (Int32) -> Void) {
        sources = numbers.map { number in
            // A source also sees ignored signals; SIGCONT and SIGWINCH do no harm by default.
            let before = signal(number, number == SIGCONT || number == SIGWINCH ? SIG_DFL : SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { handle(number) }
            source.resume()
            return (number, source, before)
        }
    }

    func cancel() {
        for (number, source, before) in sources {
            source.cancel()
            signal(number, before)
        }
    }
}
