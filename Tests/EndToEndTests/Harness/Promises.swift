import Foundation
import JobModel
import Synchronization
import TestSupport
import Testing

/// Jobs that clients submit while things fail, each with a key of its own, and what they were told about them.
final class Promises: Sendable {
    private struct State {
        var last = 0
        var accepted: [String: Int] = [:]
        var refused: Set<String> = []
    }

    private let state = Mutex(State())
    /// The file to which programs append their job's key and the number of their link.
    private let marks: String

    /// The number of jobs that were accepted.
    var accepted: Int { state.withLock(\.accepted.count) }

    init(in directory: TemporaryDirectory) { marks = directory.path + "/marks" }

    /// Submits a job and notes the answer; returns false if the connection ended first.
    @discardableResult
    func submit(at wire: Wire) async throws -> Bool {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        let key = "k\(number)"
        do {
            let job = try await wire.submit(spec(number, key))
            state.withLock { $0.accepted[key] = job }
        } catch let refusal as Wire.Refusal {
            #expect(refusal.code == -32008, "\(refusal)")
            _ = state.withLock { $0.refused.insert(key) }
        } catch is Wire.Ended {
            return false
        }
        return true
    }

    private func isProgram(_ key: String) -> Bool { Int(key.dropFirst()).map { $0 % 4 == 0 } ?? false }

    private func spec(_ number: Int, _ key: String) -> JSON {
        guard !isProgram(key) else {
            func mark(_ link: Int) -> JSON { ProgramTests.shell("echo \(key) \(link) >>\(marks)") }
            return mark(0).with(["key": .string(key), "then": [["then": mark(1)]], "retry": ["max": 50, "initial": 0]])
        }
        let rest: JSON = [["then": ["return": ["{{input}}"]]]]
        guard number % 4 == 1 else { return .value(JSON(number), ["key": .string(key), "then": rest]) }
        let jobs = (0..<3).map { JSON.value(JSON($0)) }
        return ["source": ["type": "list", "jobs": .array(jobs)], "key": .string(key)]
    }

    /// Awaits all accepted jobs, and checks that no other job is stored, and that no finished link ran again. With `onlyOnce`,
    /// no link ran again.
    func check(at wire: Wire, _ cluster: PostgreSQLCluster, _ address: String, onlyOnce: Bool) async throws {
        let (accepted, refused) = state.withLock { ($0.accepted, $0.refused) }
        #expect(Set(accepted.values).count == accepted.count, "A job was answered twice.")
        for (key, job) in accepted {
            let end = try await wire.wait(job)
            // It ran alone during three crashes in a row.
            if !onlyOnce, end["error"]?["kind"] == "interrupted" { continue }
            #expect(end["state"] == "succeeded" && end["key"] == .string(key), "\(end)")
        }
        let keys = try cluster.sql(
            "SELECT convert_from(key, 'UTF8') FROM deferd.jobs WHERE key IS NOT NULL", in: address)
        let stored = Set(keys.split(separator: "\n").map(String.init))
        #expect(stored.isDisjoint(with: refused), "Stored though refused: \(stored.intersection(refused))")
        #expect(stored.isSuperset(of: accepted.keys))
        let text = (try? String(contentsOfFile: marks, encoding: .utf8)) ?? ""
        var links: [String: [String]] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            links[words[0], default: []].append(words[1])
        }
        for (key, links) in links {
            #expect(links == links.sorted(), "The first link of \(key) ran again after its end: \(links)")
            #expect(!refused.contains(key))
            if onlyOnce, accepted[key] != nil { #expect(links == ["0", "1"], "\(key)") }
        }
        #expect(accepted.keys.allSatisfy { !isProgram($0) || links[$0]?.contains("0") == true })
    }
}
