import DeferredKit
import Testing

/// The allocations of a link: a guard of its speed that needs no clock.
@Suite struct AllocationTests {
    typealias Link = Deferred<Int, any Error>

    private static let links = 100

    /// The contract's limit for one link, besides the user's closure.
    ///
    /// Unoptimized code boxes more values; there, the limit is the current number.
    private static func limit(hopping: Bool) -> Double {
        #if DEBUG
            hopping ? 5 : 4
        #else
            3
        #endif
    }

    private final class Object {}

    private struct Elsewhere: CallbackExecutor {
        func submit(_ job: @escaping @Sendable () -> Void) { job() }
    }

    // Unsafe: written by one test in a process of its own.
    nonisolated(unsafe) private static var held: (object: AnyObject?, closure: (() -> Void)?)

    /// Keeps an object where the compiler cannot trace its use.
    @inline(never)
    private static func hold(_ object: AnyObject, _ number: Int = 0) {
        held.object = object
    }

    /// Keeps a closure in the same way.
    @inline(never)
    private static func hold(_ closure: @escaping () -> Void) {
        held.closure = closure
    }

    @Test func counter_countsObjectsAndClosures() async {
        await #expect(processExitsWith: .success) {
            #expect(AllocationCounter.count {} == 0)
            #expect(AllocationCounter.count { for _ in 0..<7 { AllocationTests.hold(Object()) } } == 7)
            let kept = Object()
            #expect(AllocationCounter.count { AllocationTests.hold(kept) } == 0)
            let one = Int.random(in: 0...9)
            #expect(AllocationCounter.count { AllocationTests.hold({ AllocationTests.hold(kept, one) }) } == 1)
        }
    }

    @Test func link_allocatesAtMostThree_besideTheUsersClosure() async {
        await #expect(processExitsWith: .success) {
            let kinds: [(name: String, make: (Link, Int) -> Link, own: (Int) -> Void)] = [
                ("map", { link, n in link.map { $0 &+ n } }, { n in keep(plain: { (m: Int) in m &+ n }) }),
                ("then", { link, n in link.then { $0 &+ n } }, { n in keep(plain: { (m: Int) in m &+ n }) }),
                (
                    "both", { link, n in link.both { _ in n } },
                    { n in keep(plain: { (_: Link.Outcome) in n }) }
                ),
                (
                    "finally", { link, n in link.finally { _ in keep(n) } },
                    { n in keep(plain: { (_: Link.Outcome) in keep(n) }) }
                ),
                ("fail", { link, n in link.fail { _ in n } }, { n in keep(plain: { (_: any Error) in n }) }),
                (
                    "mapError", { link, n in link.mapError { _ in Oops.one as any Error } },
                    { n in keep(plain: { (_: any Error) in Oops.one as any Error }) }
                ),
                ("erased", { link, _ in link.erased() }, { _ in }),
                (
                    "map elsewhere", { link, n in link.map(on: Elsewhere()) { $0 &+ n } },
                    { n in keep(plain: { (m: Int) in m &+ n }) }
                ),
                // The Deferred that the closure returns is the user's, too.
                (
                    "flatMap", { link, n in link.flatMap { .succeeded($0 &+ n) } },
                    { n in
                        keep(plain: { (m: Int) in m &+ n })
                        keep(Link.succeeded(n))
                    }
                ),
                (
                    "upon",
                    { link, n in
                        link.upon { _ in keep(n) }; return link
                    },
                    { n in keep(plain: { (_: Link.Outcome) in keep(n) }) }
                ),
            ]
            for kind in kinds {
                let resolved = AllocationTests.perLink(kind.make, kind.own, resolvesFirst: true)
                let pending = AllocationTests.perLink(kind.make, kind.own, resolvesFirst: false)
                let limit = AllocationTests.limit(hopping: kind.name.hasSuffix("elsewhere"))
                #expect(pending <= limit, "\(kind.name), resolved later: \(pending)")
                #expect(resolved <= limit, "\(kind.name), resolved before: \(resolved)")
            }
        }
    }

    /// The allocations of one of many links, from its creation to its outcome, without the user's own.
    private static func perLink(
        _ make: (Link, Int) -> Link,
        _ own: (Int) -> Void,
        resolvesFirst: Bool
    ) -> Double {
        func run() {
            let promise = Promise<Int, any Error>()
            if resolvesFirst { promise.succeed(1) }
            var last = promise.deferred
            for index in 0..<links { last = make(last, index) }
            if !resolvesFirst { promise.succeed(1) }
        }
        run()
        let all = AllocationCounter.count(run) ?? 0
        let owned = AllocationCounter.count { for index in 0..<links { own(index) } } ?? 0
        // One more for the promise's own Deferred.
        return Double(all - owned - 1) / Double(links)
    }
}

/// Uses a value in a way that the compiler does not see through.
@inline(never)
private func keep<T>(_ value: T) {
    withExtendedLifetime(value) {}
}

/// Takes a closure as a link's method does: generic, escaping and sendable.
@inline(never)
private func keep<A, B>(plain body: @escaping @Sendable (A) throws -> B) {
    keep(body)
}
