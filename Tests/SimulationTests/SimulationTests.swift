import Foundation
import struct TestSupport.SystemProgram
import Testing

@testable import simulate

@Suite struct SimulationTests {
    @Test func aSeedGivesTheSameTrace_inAnotherProcess() throws {
        // Swift orders dictionaries by a number of the process, so one process would not tell.
        let first = try trace(ofSeed: "7")
        #expect(first.count == 1)
        #expect(try trace(ofSeed: "7") == first)
        #expect(try trace(ofSeed: "8") != first)
    }

    private func trace(ofSeed seed: String) throws -> [Substring] {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        let simulator = URL(fileURLWithPath: own).deletingLastPathComponent().appending(path: "simulate").path
        let output = try SystemProgram([simulator, "--seed", seed, "--hours", "0.3"]).outputText
        return output.split(separator: "\n").filter { $0.contains("trace") }
    }

    @Test func aMemoryMadeAnew_equalsOneThatNeverFailed() {
        for seed: UInt64 in 1...4 {
            let world = World(seed: seed, printsTrace: false)
            #expect(world.run(hours: 0.5, jobs: .max) == nil)
            #expect(world.figures.comparisons > 0)
        }
    }

    @Test func everyMutantStandsOnceInTheCore() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().path
        let mutants = try Mutant.all(in: "\(root)/Tests/Simulation/Mutants")
        #expect(mutants.count >= 40)
        for mutant in mutants {
            // The store in memory is among the tests.
            let folder = mutant.file.hasPrefix("InMemoryStore/") ? "Tests" : "Sources"
            let text = try String(contentsOfFile: "\(root)/\(folder)/\(mutant.file)", encoding: .utf8)
            #expect(text.split(separator: mutant.old, omittingEmptySubsequences: false).count == 2, "\(mutant.name)")
        }
    }
}
