import JobModel
import TestSupport
import Testing

@testable import JobCore

/// Requests, ends, crashes and faults in any order, with writes and reads that are answered late and in any order: whatever
/// comes back finds jobs that changed meanwhile.
@Suite struct ChaosTests {
    private static let specs = [
        url("a"),
        url("a", #""then":[{"then":\#(step("b"))},{"finally":\#(step("f"))}]"#),
        url("b", #""delay":2,"retry":{"max":2,"initial":3,"jitter":false}"#),
        url("b", #""deadline":6,"retry":{"max":5,"initial":2,"factor":1,"jitter":false}"#),
        url("a", #""priority":9,"key":"k","then":[{"then":{"return":"\#(String(repeating: "r", count: 3000))"}}]"#),
        #"{"source":{"type":"timer","seconds":4},"timeout":3,"retry":{"max":1,"initial":1,"jitter":false}}"#,
        #"{"source":{"type":"download","url":"http://d/","path":"f"},"retry":{"max":2,"initial":2,"jitter":false}}"#,
        #"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("b", #""retry":{"max":2,"initial":2,"jitter":false}"#)),\#(url("c"))],"concurrency":1}}"#,
        #"{"source":{"type":"list","mode":"all","jobs":[\#(url("a")),\#(url("b", #""delay":5"#))]},"timeout":9}"#,
        #"{"source":{"type":"list","mode":"first","jobs":[\#(url("a", #""then":[{"finally":\#(step("f"))}]"#)),\#(url("b"))]}}"#,
        #"{"source":{"type":"value","value":[{"h":"x"},{},{"h":"y"}]},"then":[{"then":{"source":{"type":"each","in":"{{input}}","concurrency":2,"job":{"source":{"type":"list","jobs":[\#(url("{{item/h}}"))]}}}}},{"both":\#(step("z"))}]}"#,
    ]

    /// The same with programs, which take their time to end when they are cancelled.
    private static let programSpecs =
        specs + [
            program(), program(#""then":[{"finally":\#(step("f"))}],"deadline":6"#),
            program(#""then":[{"finally":{"source":{"type":"program","program":"p"}}},{"then":\#(step("b"))}]"#),
            #"{"source":{"type":"list","mode":"first","jobs":[\#(program()),\#(url("b"))],"concurrency":2}}"#,
            #"{"source":{"type":"list","jobs":[\#(program()),\#(program())]},"timeout":4}"#,
        ]

    /// The same with steps that take long, and wait for their turns.
    private static let longSpecs =
        specs + [
            url("a", #""then":[{"then":{"return":"\#(long)"}},{"both":\#(step("b"))},{"finally":\#(step("f"))}]"#),
            #"{"source":{"type":"value","value":"\#(long)"},"then":[{"then":{"return":["{{input}}"]}},{"then":\#(step("b"))}]}"#,
            #"{"source":{"type":"each","in":[1,2,3,4,5,6],"concurrency":2,"job":\#(url("a", #""then":[{"fail":{"return":"\#(long)"}}]"#))},"timeout":9}"#,
        ]
    private static let long = String(repeating: "l", count: 5_000)

    private struct Play {
        let driver: CoreDriver
        let specs: [String]
        var generator: SeededGenerator
        var asked: Set<RequestID> = []
        var lastSubscription: SubscriptionID = 100
        var life = 0

        mutating func id() -> JobID { JobID(Int.random(in: 1...max(1, driver.store.all.count + 1), using: &generator)) }

        mutating func ask(_ request: CoreRequest) {
            asked.insert(driver.ask(request, as: generator.pick([.one, .two, .root])))
        }

        mutating func act() throws {
            // Nobody asks a daemon that has not taken over.
            switch Int.random(in: (driver.hasStarted ? 0 : 15)..<28, using: &generator) {
            case 0, 1:
                let subscription: SubscriptionID? = generator.chance(0.3) ? nextSubscription() : nil
                ask(.submit([try driver.new(generator.pick(specs), subscription: subscription)]))
            case 2, 3, 4, 5, 6, 7: try end()
            case 8: ask(.cancel(id()))
            case 9: ask(.retry(id(), from: generator.pick([.failed, .start])))
            case 10: if generator.chance(0.5) { ask(.remove(id())) }
            case 11: ask(.job(id()))
            case 12:
                let scope: WatchScope = generator.pick([
                    WatchScope(.jobs([id()]), includesChildren: true), WatchScope(.all),
                    WatchScope(.tag("t"), includesChildren: true),
                ])
                let subscription = nextSubscription()
                ask(.watch(scope, subscription))
                if generator.chance(0.3) { driver.feed(.unsubscribe(subscription)) }
            case 13:
                ask(.wait(generator.chance(0.5) ? [id()] : [id(), id()], timeout: generator.pick([nil, 1])))
                if generator.chance(0.3), let request = asked.max() {
                    driver.feed(.abandon(request))
                    asked.remove(request)
                }
            case 14:
                var filter = JobFilter()
                filter.states = generator.pick([[], [.running], [.queued, .running], [.failed]])
                ask(.list(filter))
            case 15: driver.advance(generator.pick([0, 0.3, 1, 3]))
            case 16, 17, 18: driver.commitWrites(Int.random(in: 1...3, using: &generator))
            case 19, 20, 21: driver.releaseWrites(Int.random(in: 1...4, using: &generator))
            case 22, 23, 24, 25:
                guard !driver.heldReads.isEmpty else { break }
                driver.releaseRead(
                    at: Int.random(in: driver.heldReads.indices, using: &generator), isLate: generator.chance(0.5))
            case 26:
                driver.releaseCleanUps()
                driver.releaseTurns()
            default: disturb()
            }
        }

        private mutating func nextSubscription() -> SubscriptionID {
            lastSubscription += 1
            return lastSubscription
        }

        private mutating func end() throws {
            guard !driver.running.isEmpty else { return }
            let job = generator.pick(driver.running).job
            try driver.end(job, generator.pick([.success("done"), .success("done"), .passing, .lasting]))
        }

        private mutating func disturb() {
            switch driver.hasStarted ? Int.random(in: 0..<12, using: &generator) : generator.pick([0, 4, 10]) {
            case 0: driver.crash()
            case 1: driver.restart()
            case 2: driver.failsWrite = { _ in true }
            // Where one fails that a start asks for, there is no daemon.
            case 3: driver.failsRead = { [unowned driver] _ in driver.hasStarted }
            case 4...7:
                driver.failsWrite = { _ in false }
                driver.failsRead = { _ in false }
            case 8: ask(.setQueue("default", QueueChange(concurrency: Int.random(in: 1...4, using: &generator))))
            case 9: driver.holdsWrites.toggle()
            case 10: driver.holdsReads.toggle()
            default: driver.setWall(by: generator.pick([-5, 5]))
            }
            if !driver.hasStarted || driver.answers.isEmpty {
                // Nobody waits for what a daemon was asked that is gone.
                asked = asked.filter { driver.answer(to: $0) != nil }
            }
        }

        /// Lets everything end that can.
        mutating func settle() {
            driver.failsWrite = { _ in false }
            driver.failsRead = { _ in false }
            driver.holdsWrites = false
            driver.holdsReads = false
            driver.holdsCleanUps = false
            driver.holdsTurns = false
            driver.releaseCleanUps()
            driver.releaseTurns()
            driver.ask(.setQueue("default", QueueChange(concurrency: 4)), as: .root)
            for _ in 0..<60 {
                while !driver.heldWrites.isEmpty || !driver.unanswered.isEmpty { driver.releaseWrites() }
                while !driver.heldReads.isEmpty { driver.releaseReads() }
                driver.endAll()
                driver.advance(1)
            }
        }
    }

    private func describe(_ job: Job, _ driver: CoreDriver) -> String {
        let list = job.parent.flatMap { driver.stored($0.job) }
        return "\(job.state.rawValue) job \(job.id) at link \(job.link)\(job.isGated ? ", gated" : "")"
            + (driver.core.table[job.id] == nil ? "" : ", in memory")
            + (list.map { ", of \($0.state.rawValue) list \($0.id)" } ?? "")
    }

    @Test(arguments: 1...120 as ClosedRange<UInt64>)
    func everythingEnds_whateverComesInBetween(_ seed: UInt64) throws {
        let driver = CoreDriver {
            $0.queues[0].concurrency = 3
            $0.perHost = 2
        }
        driver.ask(.watch(WatchScope(.all, includesChildren: true), 1), as: .root)
        let specs = seed % 4 == 1 ? Self.programSpecs : seed % 7 == 0 ? Self.longSpecs : Self.specs
        var play = Play(driver: driver, specs: specs, generator: SeededGenerator(seed: seed))
        driver.holdsWrites = seed.isMultiple(of: 2)
        driver.holdsReads = seed.isMultiple(of: 3)
        driver.holdsCleanUps = seed.isMultiple(of: 5)
        driver.holdsTurns = seed.isMultiple(of: 7)
        for _ in 0..<600 { try play.act() }
        play.settle()
        let open = driver.store.all.filter { !$0.state.isTerminal }
        if !open.isEmpty { Issue.record("Left are \(open.map { describe($0, driver) })") }
        for request in play.asked where driver.answer(to: request) == nil {
            Issue.record("Request \(request) has no answer.")
        }
        driver.expectQuiet()
        // Nobody hears of a job after its end, unless it is retried, which is told.
        var ended: [JobID: Bool] = [:]
        for (subscribers, change) in driver.told where subscribers.contains(1) {
            // One that is cancelled before its retry is stored goes from one end to another.
            #expect(
                ended[change.job] != true || [.queued, .cancelled].contains(change.state), "job \(change.job)")
            ended[change.job] = change.isLast
        }
    }
}
