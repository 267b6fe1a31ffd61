import DeferredKit
import Dispatch
import Foundation
import Testing

// The examples for those who come from HLDeferred and Twisted, word for word.

@Suite struct DocFromHLDeferredTests {
    private let connection = Connection()
    private let queue = DispatchQueue(label: "examples")

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
}
