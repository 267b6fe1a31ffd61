import DeferredKit
import Dispatch
import Foundation
import Testing

// Every example of the documentation, word for word, so that none can be wrong for long.

private struct NotThere: Error {
    let name: String
}

private struct ParseError: Error, Equatable {
    let text: String
}

private let everything = ["list": "page", "page/first": "A page", "page": "A page with a long title", "name": "deferd"]

@Sendable private func load(_ name: String) -> Deferred<String, any Error> {
    guard let text = everything[name] else { return .failed(NotThere(name: name)) }
    return .succeeded(text)
}

private func answer() -> Deferred<Int, any Error> {
    .succeeded(42)
}

/// Something that can be stopped.
private final class Connection: Sendable {
    private let journal = Journal<String>()
    var isClosed: Bool { !journal.entries.isEmpty }
    func close() { journal.note("closed") }
    func stop() { journal.note("stopped") }
    func show(_ text: String) { journal.note(text) }
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
            UnhandledFailure.setHandler { error in print("nobody handled:", error) }
            _ = Deferred<Int, any Error>.failed(NotThere(name: "nobody"))
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
            // The same again, noting what the example above prints.
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

    struct Greeting: DataSource {
        let name: String

        func start() -> Deferred<String, any Error> {
            Deferred {
                try await Task.sleep(for: .milliseconds(1))
                return "Hello, \(name)!"
            }
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

    @Test func fromHLDeferred_works() async throws {
        let spinner = Connection()
        let error = NotThere(name: "page")
        let list = [Deferred<Int, any Error>.succeeded(1), .failed(error)]
        let login = load("name")
        let source = Greeting(name: "world")
        @Sendable func inbox(of user: String) -> Deferred<[String], any Error> { .succeeded([user]) }
        do {
            let d = answer()
            d.then { number in
                String(number)
            }.fail { error in
                "unknown"
            }
            d.then { number in
                number
            } fail: { error in
                0
            }
            d.both { outcome in
                print(outcome)
            }
            d.then { _ in 1 }
        }
        do {
            let d = answer()
            d.then { number -> Int in
                throw error
            }
            d.fail { error in
                guard error is CancellationError else {
                    throw error
                }
                return 0
            }
        }
        do {
            let d = answer()
            d.finally { outcome in
                spinner.stop()
            }
            d.finally { outcome in
                switch outcome {
                case .success(let number): print(number)
                case .failure: spinner.stop()
                }
            }
            #expect(spinner.isClosed)
        }
        do {
            let d = Promise<Int, any Error>()
            d.succeed(42)
            let e = Promise<Int, any Error>()
            e.fail(error)
            let f = Deferred<Int, any Error>.succeeded(42)
            let g = Deferred<Int, any Error>.failed(error)
            #expect(d.deferred.value == 42 && e.deferred.error is NotThere && f.value == 42 && g.error is NotThere)
            let isFirst = d.succeed(43)
            print(isFirst, d.deferred.outcome != nil)
            #expect(!isFirst)
        }
        do {
            login.then { user in
                inbox(of: user)
            }.then { inbox in
                inbox.count
            }
        }
        do {
            let d = Promise<Int, any Error> { _ in
                connection.close()
            }
            d.deferred.cancel()
            #expect(connection.isClosed)
        }
        do {
            let everything = Deferred.settled(list)

            let first = Deferred.firstSuccess(list)

            let all = Deferred.all(list)

            Deferred.settled(list).upon { outcomes in
                print(outcomes)
            }
            #expect(everything.value?.count == 2 && first.value?.value == 1 && all.error is NotThere)
        }
        do {
            let member = Promise<Int, any Error>()
            let list = [member.deferred]
            let all = Deferred.all(list)
            all.cancel()
            #expect(member.isCancelled)
        }
        do {
            let d = answer()
            let observation = d.upon { outcome in
                print(outcome)
            }
            observation.cancel()
            let limited = d.timeout(.seconds(10))
            #expect(limited.value == 42)
        }
        do {
            let queue = WorkQueue(concurrency: 4)
            let d = source.start(on: queue)
            #expect(try await d.get() == "Hello, world!")
            #expect(Answer(connection: connection).start().value == 42)
        }
    }

    private struct Answer: DataSource {
        let connection: Connection

        func start() -> Deferred<Int, any Error> {
            let promise = Promise<Int, any Error> { _ in
                connection.close()
            }
            promise.succeed(42)
            return promise.deferred
        }
    }

    @Test func fromTwisted_works() async throws {
        let canceller: @Sendable () -> Void = { [connection] in connection.close() }
        do {
            let promise = Promise<Int, any Error> { _ in canceller() }
            promise.deferred
                .then { $0 + 1 }
                .fail { _ in 0 }
                .then {
                    String($0)
                } fail: {
                    String(describing: $0)
                }
                .both { print($0) }
            promise.succeed(1)
        }
        do {
            let d = Promise<String, any Error>()
            d.deferred.fail { error in
                guard error is NotThere else { throw error }
                return ""
            }
            d.fail(NotThere(name: "page"))
        }
        do {
            @Sendable func compute() throws -> Int { 42 }
            @Sendable func coroutine() async throws -> Int { 42 }
            let known = Deferred<Int, any Error>.succeeded(42)
            let failed = Deferred<Int, any Error>.failed(NotThere(name: "page"))
            let maybe = Deferred<Int, any Error>.run(on: .inline) { try compute() }
            let elsewhere = Deferred<Int, any Error>.run(on: .background) { try compute() }
            let task = Deferred<Int, any Error> { try await coroutine() }
            print(try await known.get())
            #expect(failed.error is NotThere && maybe.value == 42)
            #expect(try await elsewhere.get() == 42)
            #expect(try await task.get() == 42)
        }
        do {
            let d = Promise<Int, any Error>()
            let c = Promise<Int, any Error>()
            let other = answer()
            let (a, b) = (d.deferred, answer())
            let gathered = Deferred.all([a, b])
            let list = Deferred.settled([a, b])
            let strict = Deferred.all([a, b])
            let first = Deferred.firstSuccess([a, b])
            let same = Deferred.firstSuccess([a, b])
            d.deferred.cancel()
            let limited = gathered.timeout(.seconds(10))
            c.resolve(with: other)
            #expect(gathered.isCancelled && list.value?.count == 2 && limited.isCancelled && strict.isCancelled)
            #expect(first.value?.index == 1 && same.value?.index == 1 && c.deferred.value == 42)
        }
        do {
            let lock = WorkQueue(concurrency: 1)
            let alone = lock.add { load("page") }
            let semaphore = WorkQueue(concurrency: 4)
            let limited = semaphore.add { load("page") }
            #expect(alone.value == everything["page"] && limited.value == everything["page"])
        }
    }

    @Test func fromOAPromise_works() {
        let error = NotThere(name: "page")
        do {
            let promise = Promise<String?, any Error>()
            promise.deferred.then { value in
                value
            } fail: { error in
                nil
            }
            promise.deferred.then { name in
                load(name ?? "list")
            }.fail { error in
                throw error
            }
            promise.deferred.both { outcome in
                String(describing: outcome)
            }
            let length = promise.deferred.map { $0?.count }
            promise.report(.fraction(0.5))
            promise.deferred.onProgress { update in
                print(update.fraction ?? 0)
            }
            promise.deferred.then(on: .queue(queue)) { value in
                print("later, on the queue:", value ?? "nothing")
            }
            promise.succeed("name")
            queue.sync {}
            #expect(length.value == 4)
        }
        do {
            let promise = Promise<String, any Error>()
            promise.succeed("a")
            print(promise.deferred.outcome != nil)
            let a = Deferred<String, any Error>.succeeded("a")
            let b = Deferred<String, any Error>.failed(error)
            #expect(promise.deferred.value == "a" && a.value == "a" && b.error is NotThere)
        }
        do {
            let promise = Promise<Int, any Error> { _ in
                connection.close()
            }
            promise.deferred.cancel()
            print(promise.isCancelled)
            #expect(promise.isCancelled && connection.isClosed)
        }
    }

    @Test func fromBNRDeferred_works() async {
        do {
            let d = Promise<Int, Never>()
            d.succeed(1)
            print(d.succeed(2) == false)
            print(d.deferred.outcome != nil)
            print(d.deferred.outcome as Any)
            print(await d.deferred.get())
            let three = Deferred<Int, Never>.succeeded(3)
            #expect(d.deferred.outcome == .success(1) && three.outcome == .success(3))
        }
        do {
            func blocked(by d: Deferred<Int, Never>) -> Int? {
                guard case .success(let value)? = d.wait(timeout: .seconds(5)) else { return nil }
                return value
            }
            #expect(blocked(by: .succeeded(1)) == 1)
        }
        @Sendable func fetch(_ number: Int) -> Deferred<String, Never> { .succeeded("\(number)") }
        let d = Deferred<Int, Never>.succeeded(1)
        do {
            d.upon { print($0) }
            d.upon(on: .queue(queue)) { print($0) }
            let next = d.map { $0 + 1 }
            let there = d.map(on: .queue(queue)) { $0 + 1 }
            let more = d.flatMap { fetch($0) }
            #expect(next.value == 2 && more.value == "1")
            #expect(await there.get() == 2)
        }
        let (a, b) = (d, Deferred<Int, Never>.succeeded(2))
        do {
            let values = Deferred.all([a, b])
            let first = Deferred.firstResolved([a, b])
            let pair = both(a, b)
            #expect(values.value == [1, 2] && first.value === a && pair.value?.1 == 2)
        }
        let image = Promise<String, Never> { promise in
            promise.succeed("placeholder")
        }
        image.deferred.upon { _ in connection.close() }
        image.deferred.cancel()
        #expect(image.deferred.outcome == .success("placeholder"))
        #expect(connection.isClosed)
        do {
            @Sendable func backup() -> Deferred<Int, any Error> { answer() }
            let task = Promise<Int, any Error>().deferred
            let other = answer()
            task.then(on: .queue(queue)) { load("\($0)") }
            task.fail(on: .queue(queue)) { _ in 0 }
            task.fail(on: .queue(queue)) { _ in backup() }
            task.cancel()
            let values = Deferred.all([task, other])
            let outcomes = Deferred.settled([task, other])
            let first = Deferred.firstResolved([task, other])
            let again = Deferred.retry(attempts: 3) { _ in backup() }
            #expect(values.isCancelled && outcomes.value?.count == 2 && first.value === task && again.value == 42)
        }
    }

    @Test func fromPINFuture_works() async throws {
        let main = queue
        let (label, spinner) = (Connection(), Connection())
        let future = load("name")
        let futures = [future, load("page")]
        let error = NotThere(name: "page")
        do {
            future.upon(on: .queue(main)) { outcome in
                switch outcome {
                case .success(let text): label.show(text)
                case .failure(let error): label.show("\(error)")
                }
            }
            future.upon(on: .queue(main)) { _ in
                spinner.stop()
            }
            queue.sync {}
            #expect(label.isClosed && spinner.isClosed)
        }
        do {
            let counts = [
                future.map(on: .inline) { $0.count },
                future.map(on: .main) { $0.count },
                future.map(on: .background) { $0.count },
                future.map(on: .queue(queue)) { $0.count },
            ]
            #expect(try await Deferred.all(counts).get() == [6, 6, 6, 6])
            #expect(try await future.map(on: ImmediateOnMain()) { $0.count }.get() == 6)
        }
        do {
            let length = future.map { $0.count }

            let loaded = future.flatMap { load($0) }

            let one = future.map { _ in 1 }
            #expect(length.value == 6 && loaded.error is NotThere && one.value == 1)
        }
        do {
            let empty = future.fail { _ in "" }
            let typed = future.flatMapError { _ in Deferred<String, Never>.succeeded("") }
            let healed = future.flatMapError { _ in load("cache") }
            let plain = future.mapError { NotThere(name: "\($0)") }
            #expect(empty.value == "deferd" && typed.value == "deferd" && healed.value == "deferd")
            #expect(plain.value == "deferd")
        }
        do {
            let logged = future.finally { print($0) }
            let stopped = future.finally { _ in spinner.stop() }
            #expect(logged.value == "deferd" && stopped.value == "deferd")
        }
        do {
            let all = Deferred.all(futures)
            let some = Deferred.settled(futures)
            let bare = some.map { $0.map { try? $0.get() } }
            #expect(all.value?.count == 2 && some.value?.count == 2 && bare.value?.first == "deferd")
        }
        do {
            func loadThen(_ resolve: (String) -> Void, orElse reject: (any Error) -> Void) {
                resolve("a")
                reject(error)
            }
            let a = Deferred<String, any Error>.succeeded("a")
            let b = Deferred<String, any Error>.failed(error)
            let adapted = Promise<String, any Error>()
            loadThen {
                adapted.succeed($0)
            } orElse: {
                adapted.fail($0)
            }
            #expect(a.value == "a" && b.error is NotThere && adapted.deferred.value == "a")
        }
        do {
            let promise = Promise<String, any Error>()
            print(promise.deferred.outcome == nil)
            promise.succeed("a")
            let run = Deferred<Int, any Error>.run(on: .background) {
                6 * 7
            }
            #expect(promise.deferred.value == "a")
            #expect(try await run.get() == 42)
        }
    }

    private struct ImmediateOnMain: CallbackExecutor {
        func submit(_ job: @escaping @Sendable () -> Void) {
            if Thread.isMainThread { job() } else { DispatchQueue.main.async(execute: job) }
        }
    }

    @Test func performance_works() async throws {
        @Sendable func countdown(_ number: Int) -> Deferred<Int, any Error> {
            Deferred.succeeded(number).flatMap { $0 == 0 ? .succeeded(0) : countdown($0 - 1) }
        }
        print(try await countdown(100_000).get())
    }

    // MARK: - The documentation itself

    /// This very file, wherever a package has linked it from.
    private static let here = URL(filePath: #filePath).resolvingSymlinksInPath()
    private static let root = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The lines of a text without what is only indentation.
    private static func lines(of text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    /// Every example in a text, be it an article or the comments of a source file.
    private static func examples(in text: String) -> [String] {
        var examples: [String] = []
        var current: [String]?
        for line in lines(of: text) {
            let line = line.hasPrefix("///") ? line.dropFirst(3).trimmingCharacters(in: .whitespaces) : line
            if current == nil, line == "```swift" {
                current = []
            } else if let finished = current, line == "```" {
                examples.append(finished.filter { !$0.isEmpty }.joined(separator: "\n"))
                current = nil
            } else {
                current?.append(line)
            }
        }
        return examples
    }

    @Test func everyExample_isInATest() throws {
        let sources = Self.root.appending(path: "Sources/DeferredKit").resolvingSymlinksInPath()
        let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
            .compactMap { $0 as? URL }.filter { ["md", "swift"].contains($0.pathExtension) }
        let tested = try ["DeferredKitTests", "DataSourcesTests"].flatMap { folder -> [URL] in
            let tests = Self.root.appending(path: "Tests/\(folder)").resolvingSymlinksInPath()
            return try FileManager.default.contentsOfDirectory(at: tests, includingPropertiesForKeys: nil)
        }
        .filter { $0.lastPathComponent.hasPrefix("Doc") }
        .map { try Self.lines(of: String(contentsOf: $0, encoding: .utf8)).joined(separator: "\n") }
        var count = 0
        for file in files {
            for example in try Self.examples(in: String(contentsOf: file, encoding: .utf8)) {
                count += 1
                let isTested = tested.contains { $0.contains(example) }
                #expect(isTested, "an example of \(file.lastPathComponent) is not tested")
            }
        }
        #expect(count > 50)
    }

    @Test func finder_findsExamples() {
        let text = """
            Text.
              ```swift
              let a = 1

                b()
              ```
            ```objc
            [c d];
            ```
            /// ```swift
            /// e()
            /// ```
            """
        #expect(Self.examples(in: text) == ["let a = 1\nb()", "e()"])
    }

    @Test func protocolExample_works() {
        struct Answer: DataSource {
            func start() -> Deferred<Int, any Error> { .succeeded(42) }
        }
        #expect(Answer().start().value == 42)
    }
}
