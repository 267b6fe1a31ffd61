import Foundation
import FuzzBodies
import FuzzSourceBodies
import TestSupport
import Testing

/// What the fuzzers begin with, and small changes of it, without libFuzzer: each input passes.
@Suite struct CorpusTests {
    private static let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

    private static func inputs(_ directories: String...) throws -> [(name: String, bytes: [UInt8])] {
        try directories.flatMap { directory in
            let directory = tests.appending(path: directory)
            let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
            return try files.map { ($0.lastPathComponent, [UInt8](try Data(contentsOf: $0))) }
        }
    }

    private func check(_ inputs: [(name: String, bytes: [UInt8])], _ body: ([UInt8]) throws(Finding) -> Void) {
        #expect(inputs.count > 20)
        for (name, bytes) in inputs {
            pass(bytes, name, body)
            var random = SeededGenerator(seed: UInt64(bytes.count))
            for round in 1...20 where !bytes.isEmpty {
                var changed = bytes
                for _ in 0..<round {
                    changed[Int.random(in: changed.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                pass(changed, "\(name), round \(round)", body)
            }
        }
    }

    private func pass(_ bytes: [UInt8], _ name: String, _ body: ([UInt8]) throws(Finding) -> Void) {
        do { try body(bytes) } catch { Issue.record("\(name): \(error)") }
    }

    @Test func lines_areReadAlike_howeverTheyAreSplit() throws {
        check(try Self.inputs("Fuzz/Corpus/lines", "JobProtocolTests/Fixtures/requests"), LineBody.check)
    }

    @Test func specs_areReadAgain_andFilledIn() throws {
        check(try Self.inputs("Fuzz/Corpus/spec", "JobModelTests/Fixtures/specs"), SpecBody.check)
    }

    @Test func calendars_haveTimesInOrder_whateverTheZone() throws {
        check(try Self.inputs("Fuzz/Corpus/calendar"), CalendarBody.check)
    }

    @Test func answers_areReadAlike_howeverTheyAreSplit() throws {
        check(try Self.inputs("Fuzz/Corpus/http"), AnswerBody.check)
    }

    /// The waiting of the sources' own timeouts is left to the fuzzer: each of these answers ends by itself.
    @Test func responses_giveResultOrError() throws {
        let directory = try TemporaryDirectory()
        let body = try ResponseBody(directory: directory.path)
        let inputs = try Self.inputs("Fuzz/Corpus/http")
        #expect(inputs.count > 20)
        for (name, bytes) in inputs { pass(bytes, name) { (bytes) throws(Finding) in try body.check(bytes) } }
    }

    @Test func changedDatabases_areRefused_orReadWithoutATrap() throws {
        let directory = try TemporaryDirectory()
        let body = try StateBody(directory: directory.path)
        let inputs = try Self.inputs("Fuzz/Corpus/state")
        #expect(inputs.count > 20)
        for (name, bytes) in inputs { pass(bytes, name) { (bytes) throws(Finding) in try body.check(bytes) } }
    }
}
