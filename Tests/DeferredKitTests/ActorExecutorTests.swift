import DeferredKit
import Testing

/// Callbacks on actors, the main one among them, and on task executors.
@Suite struct ActorExecutorTests {
    private actor Counter {
        var values: [Int] = []
        func note(_ value: Int) { values.append(value) }
        nonisolated func isHere() -> Bool {
            preconditionIsolated()
            return true
        }
    }

    @Test func callbacks_runOnTheActor_inOrder() async throws {
        let counter = Counter()
        let executor = ActorExecutor(counter)
        let promise = Promise<Int, any Error>()
        for number in 0..<100 {
            promise.deferred.upon(on: executor) { (counter: isolated Counter, _) in counter.note(number) }
        }
        let last = promise.deferred.map(on: executor) { (counter: isolated Counter, value) in
            counter.values.count + value
        }
        promise.succeed(1)
        #expect(try await last.get() == 101)
        #expect(await counter.values == Array(0..<100))
    }

    @Test func anyCallback_runsOnTheActor_whenTheActorIsItsExecutor() async throws {
        let counter = Counter()
        let link = Deferred<Int, any Error>.succeeded(1).then(on: .actor(counter)) { counter.isHere() ? $0 + 1 : 0 }
        #expect(try await link.get() == 2)
    }

    @Test func progress_arrivesOnTheActor() async {
        let counter = Counter()
        let executor = ActorExecutor(counter)
        let promise = Promise<Int, any Error>()
        promise.deferred.onProgress(on: executor) { (counter: isolated Counter, update) in
            counter.note(Int(update.completed))
        }
        promise.report(ProgressUpdate(completed: 3, total: nil))
        await Deferred<Void, Never>.run(on: executor) {}.get()
        #expect(await counter.values == [3])
        promise.succeed(1)
    }

    @Test func actor_doesItsOtherWork_betweenTheCallbacks() async {
        let counter = Counter()
        let executor = ActorExecutor(counter)
        let first = Promise<Int, Never>()
        let other = first.deferred.map(on: executor) { (counter: isolated Counter, value) in
            first.deferred.upon(on: executor) { (counter: isolated Counter, _) in counter.note(2) }
            return Task { counter.note(value) }
        }
        first.succeed(1)
        await other.get().value
        await Deferred<Void, Never>.run(on: executor) {}.get()
        #expect(await counter.values == [1, 2])
    }

    @MainActor private final class View {
        var texts: [String] = []
    }

    @Test func callbacks_mayUseTheMainActorsState_inOrder() async throws {
        let view = View()
        let promise = Promise<Int, any Error>()
        promise.deferred.onProgress(on: .mainActor) { @MainActor in view.texts.append("\($0.completed)") }
        promise.deferred.upon(on: .mainActor) { @MainActor outcome in view.texts.append("upon") }
        let count = promise.deferred.map(on: .mainActor) { @MainActor value in view.texts.count + value }
        promise.report(ProgressUpdate(completed: 7, total: nil))
        await Deferred<Void, Never>.run(on: .mainActor) {}.get()
        promise.succeed(1)
        #expect(try await count.get() == 3)
        #expect(await view.texts == ["7", "upon"])
    }

    @Test func callbacks_runOnTheTaskExecutor() async throws {
        let executor = SerialTasks()
        let link = Deferred<Int, any Error>.succeeded(1).map(on: .tasks(on: executor)) { value in
            withUnsafeCurrentTask { $0 != nil } ? value + 1 : 0
        }
        #expect(try await link.get() == 2)
    }
}
