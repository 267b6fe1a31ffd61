import DeferredKit
import Dispatch
import Foundation
import Testing

// Every example of the documentation, word for word, so that none stays wrong for long; DocCoverageTests check that
// none is missing.

struct Greeting: DataSource {
    let name: String

    func start() -> Deferred<String, any Error> {
        Deferred {
            try await Task.sleep(for: .milliseconds(1))
            return "Hello, \(name)!"
        }
    }
}

@Suite struct DocExamplesTests {
    private let connection = Connection()
    private let queue = DispatchQueue(label: "examples")

    @Test func overview_works() async throws {
        let labels = queue
        do {
            let promise = Promise<String, any Error>()
            let greeting = promise.deferred.map { "Hello, \($0)!" }
            promise.succeed("world")
            print(try await greeting.get())
            #expect(greeting.value == "Hello, world!")
        }
        do {
            let known = Deferred<Int, any Error>.succeeded(42)
            let computed = Deferred<Int, any Error>.run(on: .background) { 6 * 7 }
            let awaited = Deferred<Int, any Error> { try await computed.get() }
            #expect(known.value == 42)
            #expect(try await awaited.get() == 42)
        }
        do {
            let size = load("list")
                .then { list in load(list + "/first") }
                .then { $0.count }
                .fail { error in
                    guard error is NotThere else { throw error }
                    return 0
                }
            #expect(size.value == 6)
        }
        do {
            let port: Deferred<Int, ParseError> = Deferred.succeeded("8080").map { (text) throws(ParseError) in
                guard let number = Int(text) else { throw ParseError(text: text) }
                return number
            }
            #expect(port.value == 8080)
        }
        do {
            let title = load("page")
                .then(on: .background) { page in page.prefix(10) }
                .then(on: .queue(labels)) { title in String(title) }
            #expect(try await title.get() == "A page wit")
        }
        do {
            let seen = load("page").upon { outcome in print(outcome) }
            seen.cancel()
        }
        do {
            let pages = Deferred.all(["a", "b", "c"].map(load))
            let outcomes = Deferred.settled(["a", "b", "c"].map(load))
            let fastest = Deferred.firstSuccess(["mirror", "origin"].map(load))
            let pair = both(load("name"), answer())
            #expect(pages.error is NotThere)
            #expect(outcomes.value?.count == 3)
            #expect(fastest.error is FailureGroup<any Error>)
            #expect(pair.value?.0 == "deferd")
        }
        do {
            let robust = Deferred.retry(attempts: 3, delay: { .milliseconds(10 * $0) }) { _ in load("page") }
                .timeout(.seconds(5))
            #expect(try await robust.get() == everything["page"])
        }
    }

    @Test func handler_works() async {
        // In a process of its own, as the handler belongs to the whole process.
        await #expect(processExitsWith: .success) {
            UnhandledFailure.setHandler { error in print("unhandled:", error) }
            _ = Deferred<Int, any Error>.failed(NotThere(name: "none"))
        }
    }

    @Test func cancellation_works() async throws {
        do {
            let promise = Promise<Data, any Error> { _ in connection.close() }
            let page = promise.deferred.then { String(decoding: $0, as: UTF8.self) }
            page.cancel()
            print(connection.isClosed, page.outcome as Any)
            #expect(connection.isClosed)
            #expect(page.isCancelled)
        }
        do {
            let promise = Promise<Int, Never> { $0.succeed(0) }
            promise.deferred.cancel()
            print(await promise.deferred.get())
            #expect(promise.deferred.outcome == .success(0))
        }
        do {
            let source = Promise<Int, any Error>()
            let mine = source.deferred.map { $0 + 1 }
            let yours = source.deferred.map { $0 * 2 }
            mine.cancel()
            source.succeed(21)
            print(mine.outcome as Any, yours.outcome as Any)
            #expect(mine.isCancelled)
            #expect(yours.value == 42)
        }
        do {
            let slow = Deferred<Int, any Error> {
                try await Task.sleep(for: .seconds(3600))
                return 1
            }
            slow.cancel()
            print(slow.outcome as Any)
            #expect(slow.isCancelled)
        }
    }

    @Test func progress_works() {
        do {
            let journal = Journal<Int64>()
            let promise = Promise<Data, any Error>()
            let text = promise.deferred.then { String(decoding: $0, as: UTF8.self) }
            text.onProgress { update in print(update.completed, "of", update.total ?? -1, "bytes") }
            promise.report(ProgressUpdate(completed: 512, total: 2048))
            promise.report(ProgressUpdate(completed: 2048, total: 2048))
            promise.succeed(Data())
            text.onProgress { journal.note($0.completed) }
            #expect(text.value?.isEmpty == true)
        }
        do {
            let first = Promise<Int, any Error>()
            let second = Promise<Int, any Error>()
            Deferred.all([first.deferred, second.deferred]).onProgress { print($0.completed, $0.total ?? -1) }
            first.report(ProgressUpdate(completed: 10, total: 100))
            second.report(ProgressUpdate(completed: 30, total: 50))
            second.succeed(2)
        }
        do {
            // The same again, recording the output of the example above.
            let journal = Journal<String>()
            let first = Promise<Int, any Error>()
            let second = Promise<Int, any Error>()
            Deferred.all([first.deferred, second.deferred])
                .onProgress { journal.note("\($0.completed) \($0.total ?? -1)") }
            first.report(ProgressUpdate(completed: 10, total: 100))
            second.report(ProgressUpdate(completed: 30, total: 50))
            second.succeed(2)
            #expect(journal.entries == ["10 -1", "40 150", "60 150"])
        }
    }

    struct LineCount: DataSource {
        let file: URL

        func start() -> Deferred<Int, any Error> {
            let promise = Promise<Int, any Error>()
            DispatchQueue.global().async {
                do {
                    let data = try Data(contentsOf: file)
                    var lines = 0
                    for (offset, byte) in data.enumerated() {
                        if promise.isCancelled { return }
                        if byte == UInt8(ascii: "\n") { lines += 1 }
                        if offset % 65_536 == 0 {
                            promise.report(ProgressUpdate(completed: Int64(offset), total: Int64(data.count)))
                        }
                    }
                    promise.succeed(lines)
                } catch {
                    promise.fail(error)
                }
            }
            return promise.deferred
        }
    }

    @Test func dataSource_works() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "lines-\(UUID().uuidString)")
        try Data("one\ntwo\n".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let queue = WorkQueue(concurrency: 2)
        let count = LineCount(file: file).start(on: queue)
        let greeting = Greeting(name: "world").start(on: queue, priority: 1)
        print(try await both(count, greeting).get())
        await queue.drained()
        #expect(count.value == 2)
        #expect(greeting.value == "Hello, world!")
        let missing = LineCount(file: file.appending(path: "missing"))
        await #expect(throws: (any Error).self) { try await missing.start().get() }
    }

    @Test func performance_works() async throws {
        @Sendable func countdown(_ number: Int) -> Deferred<Int, any Error> {
            Deferred.succeeded(number).flatMap { $0 == 0 ? .succeeded(0) : countdown($0 - 1) }
        }
        print(try await countdown(100_000).get())
        #expect(try await countdown(100_000).get() == 0)
    }

    @Test func protocolExample_works() {
        struct Answer: DataSource {
            func start() -> Deferred<Int, any Error> { .succeeded(42) }
        }
        #expect(Answer().start().value == 42)
    }
}
