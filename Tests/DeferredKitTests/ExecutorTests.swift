import DeferredKit
import Dispatch
import Foundation
import Testing

/// Where callbacks run, with each of the executors that there are.
@Suite struct ExecutorTests {
    private static let key = DispatchSpecificKey<String>()

    /// The name of the queue on which a closure runs.
    private static var label: String { DispatchQueue.getSpecific(key: key) ?? "elsewhere" }

    @Test func main_isTheMainQueue() async {
        DispatchQueue.main.setSpecific(key: Self.key, value: "main")
        #expect(await Deferred<String, Never>.run(on: .main) { Self.label }.get() == "main")
        #expect(await Deferred<Int, Never>.succeeded(1).map(on: .main) { _ in Self.label }.get() == "main")
    }

    @Test func queue_isTheNamedQueue_forEveryKindOfCallback() async throws {
        let queue = DispatchQueue(label: "named")
        queue.setSpecific(key: Self.key, value: "named")
        let one = Deferred<Int, any Error>.succeeded(1)
        let failed = Deferred<Int, any Error>.failed(Oops.one)
        let labels = Journal<String>()
        let links: [Deferred<Void, any Error>] = [
            one.map(on: .queue(queue)) { _ in labels.note(Self.label) },
            one.flatMap(on: .queue(queue)) { _ in
                labels.note(Self.label)
                return .succeeded(())
            },
            one.then(on: .queue(queue)) { _ in labels.note(Self.label) },
            one.both(on: .queue(queue)) { _ in labels.note(Self.label) },
            one.finally(on: .queue(queue)) { _ in labels.note(Self.label) }.map { _ in },
            failed.fail(on: .queue(queue)) { _ in
                labels.note(Self.label)
                return 0
            }.map { _ in },
            failed.mapError(on: .queue(queue)) { error in
                labels.note(Self.label)
                return error
            }.fail { _ in 0 }.map { _ in },
            failed.flatMapError(on: .queue(queue)) { _ in
                labels.note(Self.label)
                return Deferred<Int, any Error>.succeeded(0)
            }.map { _ in },
            one.then(on: .queue(queue)) { _ in
                labels.note(Self.label)
            } fail: { _ in
                labels.note(Self.label)
            },
            failed.then(on: .queue(queue)) { _ in
                labels.note(Self.label)
            } fail: { _ in
                labels.note(Self.label)
            },
            Deferred.run(on: .queue(queue)) { labels.note(Self.label) },
        ]
        _ = try await Deferred.all(links).get()
        #expect(labels.entries == Array(repeating: "named", count: links.count))
    }

    @Test func operations_isTheNamedOperationQueue() async {
        let operations = OperationQueue()
        let there = Deferred<Int, Never>.succeeded(1).map(on: .operations(operations)) { _ in
            OperationQueue.current === operations
        }
        #expect(await there.get())
    }

    @Test func background_runsSideBySide() async throws {
        let (first, second) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let one = Deferred<Int, any Error>.run(on: .background) {
            first.signal()
            second.wait()
            return 1
        }
        let two = Deferred<Int, any Error>.run(on: .background) {
            second.signal()
            first.wait()
            return 2
        }
        #expect(try await both(one, two).get() == (1, 2))
    }

    @Test func inline_isTheResolvingThread() {
        let queue = DispatchQueue(label: "resolving")
        queue.setSpecific(key: Self.key, value: "resolving")
        let promise = Promise<Int, any Error>()
        let link = promise.deferred.map { _ in Self.label }
        queue.sync { _ = promise.succeed(1) }
        #expect(link.value == "resolving")
    }
}
