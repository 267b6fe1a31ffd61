import DeferredKit
import Synchronization
import Testing

// The example of InDeferd.md, word for word.

final class Attempts: Sendable {
    private let running = Mutex<[Int: Deferred<String, any Error>]>([:])
    private let tell: @Sendable (String) -> Void

    init(tell: @escaping @Sendable (String) -> Void) { self.tell = tell }

    func start(_ number: Int, _ source: some DataSource<String>) {
        let work = source.start()
        running.withLock { $0[number] = work }
        work.onProgress { [tell] in tell("\(number): \($0.completed) bytes") }
        work.upon(on: InlineExecutor()) { [self] outcome in
            guard running.withLock({ $0.removeValue(forKey: number) }) != nil else { return }
            switch outcome {
            case .success(let value): tell("\(number): succeeded with \(value)")
            case .failure(let error): tell("\(number): failed with \(error)")
            }
        }
    }

    func cancel(_ number: Int) {
        guard let work = running.withLock({ $0.removeValue(forKey: number) }) else { return }
        work.cancel()
        tell("\(number): cancelled")
    }
}

/// What the example's source reads from.
final class Port: Sendable {
    private struct Ends {
        var received: (@Sendable (Int64) -> Void)?
        var closed: (@Sendable (String) -> Void)?
        var isClosed = false
    }

    private let ends = Mutex(Ends())
    var isClosed: Bool { ends.withLock(\.isClosed) }

    func open(received: @escaping @Sendable (Int64) -> Void, closed: @escaping @Sendable (String) -> Void) {
        ends.withLock { ($0.received, $0.closed) = (received, closed) }
    }

    func receive(_ count: Int64) { ends.withLock(\.received)?(count) }
    func end(_ text: String) { ends.withLock(\.closed)?(text) }
    func close() { ends.withLock { $0.isClosed = true } }
}

struct Copy: DataSource {
    let port: Port

    func start() -> Deferred<String, any Error> {
        let promise = Promise<String, any Error> { [port] _ in port.close() }
        port.open(
            received: { promise.report(ProgressUpdate(completed: $0, total: nil)) },
            closed: { promise.succeed($0) })
        return promise.deferred
    }
}

@Suite struct DocInDeferdTests {
    @Test func attempt_tellsProgressAndOutcome() {
        let journal = Journal<String>()
        let attempts = Attempts { journal.note($0) }
        let port = Port()
        attempts.start(1, Copy(port: port))
        port.receive(5)
        port.end("hello")
        #expect(journal.entries == ["1: 5 bytes", "1: succeeded with hello"])
        #expect(!port.isClosed)
    }

    @Test func cancelledAttempt_stopsItsSource_andItsLateOutcomeTellsNothing() {
        let journal = Journal<String>()
        let attempts = Attempts { journal.note($0) }
        let port = Port()
        attempts.start(2, Copy(port: port))
        attempts.cancel(2)
        port.end("late")
        #expect(port.isClosed)
        #expect(journal.entries == ["2: cancelled"])
    }
}
