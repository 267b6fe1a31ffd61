import Foundation
import JobCore
import JobModel
import struct TestSupport.SystemProgram
import Testing

@testable import simulate

@Suite struct SimulationTests {
    @Test func aSeedGivesTheSameTrace_whenItIsRunAgainInAnotherProcess() throws {
        // Swift orders dictionaries by a number of the process, so one process would not tell.
        let first = try output(["--seed", "7", "--hours", "0.3"])
        let second = try output(["--seed", "7", "--hours", "0.3"])
        let lines = first.split(separator: "\n").filter { $0.contains("trace") }
        #expect(lines.count == 1)
        #expect(lines == second.split(separator: "\n").filter { $0.contains("trace") })
    }

    @Test func otherSeedsGiveOtherTraces() {
        var hashes: Set<UInt64> = []
        for seed: UInt64 in 1...3 {
            let world = World(seed: seed)
            _ = world.run(hours: 0.05)
            hashes.insert(world.trace.hash)
        }
        #expect(hashes.count == 3)
    }

    @Test func theQueueGivesEventsInTheOrderOfTheirTimes_andOfOneTimeAsTheyCame() {
        var random = SeededGenerator(seed: 1)
        var queue = EventQueue<Int>()
        let times = (0..<500).map { _ in Int64(random.below(40)) }
        for (number, time) in times.enumerated() { queue.add(number, at: time) }
        let order = (0..<500).compactMap { _ in queue.popFirst() }
        #expect(order == (0..<500).sorted { (times[$0], $0) < (times[$1], $1) })
        #expect(queue.popFirst() == nil)
    }

    @Test func aWakeIsAtTheEarlierOfBothClocks_howeverTheWallClockIsSet() {
        var clock = SimulatedClock()
        clock.advance(to: 5_000_000_000)
        clock.setWrong(by: 3_600_000)
        let wall = clock.wall.adding(seconds: 2)
        #expect(clock.elapsed(of: .init(wall: wall, monotonic: nil)) == 7_000_000_000)
        #expect(clock.elapsed(of: .init(wall: wall, monotonic: clock.now.monotonic + 1)) == 5_000_000_001)
        #expect(clock.elapsed(of: .init(wall: nil, monotonic: nil)) == nil)
    }

    @Test func aChainGoesOnWhereItsOutcomesSay() throws {
        let json: JSON = [
            "source": ["type": "value", "value": 1],
            "then": [["fail": ["return": 2]], ["then": ["return": 3]], ["finally": ["return": 4]]],
        ]
        var job = Job(
            spec: try JobSpecReader.spec(json, limits: JobLimits()), owner: 1, state: .running,
            createdAt: Timestamp(milliseconds: 0))
        #expect(Chain.position(of: job) == .at(0))
        job.outcomes = [outcome(0)]
        #expect(Chain.position(of: job) == .at(2))
        job.outcomes = [outcome(0, "odd")]
        #expect(Chain.position(of: job) == .at(1))
        job.outcomes = [outcome(0), outcome(2), outcome(3)]
        #expect(Chain.position(of: job) == .over)
        job.outcomes = [outcome(0), outcome(3)]
        #expect(Chain.position(of: job) != .over)
        job.stop = .cancelled
        #expect(Chain.position(of: job) == .over)
    }

    private func outcome(_ link: Int, _ kind: String? = nil) -> LinkOutcome {
        let now = Timestamp(milliseconds: 0)
        return LinkOutcome(
            link: link, error: kind.map { JobError(JobError.Kind(rawValue: $0), "It failed.") }, startedAt: now,
            finishedAt: now, attempts: 1)
    }

    @Test func anOwnerWhoIsPassedOverShows_whenTheyCouldStartAllTheWhile() {
        var shares = Shares()
        shares.add(Shares.Key(queue: "q", owner: 1, host: "h"))
        shares.serve(1, in: "q")
        #expect(shares.share(of: 1, in: "q") == nil, "too few starts say nothing")
        // Of those in which they had more, or could not start, nothing follows.
        for _ in 0..<500 { shares.serve(2, in: "q") }
        #expect(shares.share(of: 1, in: "q") == nil)
        for _ in 1..<Shares.window { shares.serve(2, in: "q", passingOver: [1]) }
        #expect(shares.share(of: 1, in: "q")?.turns == 1)
        shares.serve(3, in: "q", passingOver: [1])
        #expect(shares.share(of: 1, in: "q")?.turns == 0)
        #expect(shares.share(of: 1, in: "q")?.owners == 3)
        shares.forgetTurns(in: "q")
        #expect(shares.share(of: 1, in: "q") == nil)
    }

    @Test func everyMutantStandsOnceInTheCore() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().path
        let mutants = try Mutant.all(in: "\(root)/Tests/Simulation/Mutants")
        #expect(mutants.count >= 30)
        for mutant in mutants {
            let path = ["Sources", "Tests"].map { "\(root)/\($0)/\(mutant.file)" }
                .first { FileManager.default.fileExists(atPath: $0) }
            let text = try String(contentsOfFile: try #require(path, "\(mutant.file)"), encoding: .utf8)
            #expect(text.split(separator: mutant.old, omittingEmptySubsequences: false).count == 2, "\(mutant.name)")
        }
    }

    /// What the simulator prints; it was built beside the tests.
    private func output(_ arguments: [String]) throws -> String {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        let simulator = URL(fileURLWithPath: own).deletingLastPathComponent().appending(path: "simulate").path
        return try SystemProgram([simulator] + arguments).outputText
    }
}
