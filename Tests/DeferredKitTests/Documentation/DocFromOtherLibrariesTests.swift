import DeferredKit
import Dispatch
import Foundation
import Testing

// The examples for those who come from OAPromise, BNR Deferred and PINFuture, word for word.

@Suite struct DocFromOtherLibrariesTests {
    private let connection = Connection()
    private let queue = DispatchQueue(label: "examples")

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
}
