import Dispatch
import Glibc
import Synchronization

/// Lets Ctrl-C (SIGINT) and SIGTERM end the program's wait, while the jobs go on.
final class Interruption: Sendable {
    /// The time in which a second Ctrl-C cancels.
    private static let patience = DispatchTimeInterval.seconds(1)

    private let farewell: Mutex<String>
    /// What a second Ctrl-C does, and the hint after the first.
    private let second = Mutex<(hint: String, cancel: @Sendable () async -> Void)?>(nil)

    init(farewell: String) { self.farewell = Mutex(farewell) }

    /// An interruption whose farewell says how to return to these jobs by `verb` of `command`.
    convenience init(from verb: String, jobs: [Int64], by command: String) {
        // A list of a thousand ids would not help.
        let numbers = jobs.count <= 50 ? jobs.map(String.init).joined(separator: " ") : "ID.. (see \(command) list)"
        let subject = jobs.count == 1 ? "job \(numbers) goes on" : "the jobs go on"
        self.init(farewell: "Detached; \(subject). Come back with: \(command) \(verb) \(numbers)")
    }

    func set(farewell text: String) { farewell.withLock { $0 = text } }

    /// Lets a Ctrl-C that follows another within a second call `cancel` instead; a first one shows `hint`.
    func set(hint: String, second cancel: @escaping @Sendable () async -> Void) {
        second.withLock { $0 = (hint, cancel) }
    }

    /// Runs `body`; a signal cancels it and throws the farewell. A further signal ends the program at once.
    func run<Value: Sendable>(_ body: @Sendable @escaping () async throws -> Value) async throws -> Value {
        // The signals, and nil when the time for a second Ctrl-C is over.
        let (events, continuation) = AsyncStream.makeStream(of: Int32?.self, bufferingPolicy: .bufferingNewest(4))
        let sources = SignalSources([SIGINT, SIGTERM]) { continuation.yield($0) }
        defer { sources.cancel() }
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await body() }
            group.addTask { [self] in
                var isWaiting = false
                for await event in events {
                    switch event {
                    case SIGINT? where isWaiting:
                        isWaiting = false
                        signal(SIGINT, SIG_DFL)
                        await second.withLock { $0?.cancel }?()
                    case SIGINT?:
                        guard let hint = second.withLock({ $0?.hint }) else {
                            signal(SIGINT, SIG_DFL)
                            return nil
                        }
                        isWaiting = true
                        try? FileOutput.standardError.write("deferctl: \(hint)\n")
                        DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) {
                            continuation.yield(nil)
                        }
                    case let number?:
                        signal(number, SIG_DFL)
                        return nil
                    case nil: if isWaiting { return nil }
                    }
                }
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
