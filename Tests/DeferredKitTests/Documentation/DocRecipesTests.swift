import DeferredKit
import Foundation
import Testing

// The recipes, word for word; DocCoverageTests check that none is missing. The examples for NIO are in the tests of
// DataSources, which import NIO.

actor Library {
    var titles: [String] = []

    func add(_ title: String) { titles.append(title) }
}

@MainActor final class Window {
    var title = ""
    var progress = 0.0
}

@MainActor func show(_ page: Deferred<String, any Error>, in window: Window) {
    page.onProgress(on: .mainActor) { @MainActor in window.progress = $0.fraction ?? 0 }
    page.upon(on: .mainActor) { @MainActor outcome in window.title = (try? outcome.get()) ?? "no page" }
}

func run() -> Int32 {
    let size = load("page").then { $0.count }.timeout(.seconds(10))
    switch size.wait(timeout: .seconds(11)) {
    case .success(let count)?:
        print(count)
        return 0
    case .failure(let error)?:
        print("failed:", error)
        return 1
    case nil:
        return 2
    }
}

@Suite struct DocRecipesTests {
    @Test func actor_works() async throws {
        let library = Library()
        let executor = ActorExecutor(library)
        let count = load("page").map(on: executor) { (library: isolated Library, title) in
            library.add(title)
            return library.titles.count
        }
        print(try await count.get())
        #expect(try await count.get() == 1)
    }

    @Test func mainActor_works() async {
        let window = Window()
        let promise = Promise<String, any Error>()
        await show(promise.deferred, in: window)
        promise.report(.fraction(0.5))
        await Deferred<Void, Never>.run(on: .mainActor) {}.get()
        promise.succeed("A page")
        await Deferred<Void, Never>.run(on: .mainActor) {}.get()
        #expect(await window.progress == 0.5)
        #expect(await window.title == "A page")
    }

    @Test func task_works() async throws {
        for await (index, outcome) in Deferred.outcomes(of: ["page", "name"].map(load)) {
            print(index, outcome)
        }
        let pages = Deferred.concurrentMap(["list", "page", "name"], limit: 2) { load($0) }
        print(try await pages.get().count)
        #expect(pages.value?.count == 3)
    }

    @Test func commandLine_works() async {
        #expect(run() == 0)
        await #expect(processExitsWith: .success) {
            UnhandledFailure.setHandler { error in print("unhandled:", error) }
            BrokenPromise.setHandler { promise in print(promise) }
        }
    }
}
