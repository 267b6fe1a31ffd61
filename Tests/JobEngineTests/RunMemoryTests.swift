import Foundation
import JobCore
import JobModel
import TestOrigin
import Testing

@testable import JobEngine

/// What the engine keeps of sources that are at work.
@Suite struct RunMemoryTests {
    /// What this process has of its own in memory, in KiB.
    private static func resident() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon") }
        return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }

    private static let jobs = 4
    /// Expressions in a body, of 700 bytes each: 48 MB, so long that the allocator gives it back at once.
    private static let expressions = 68_000
    /// In KiB: two of the four, as what was let go may be given back a moment later.
    fileprivate static let most = 96 << 10

    /// The library lets a body go once it stands in a file, and nobody else may keep it.
    @Test func body_isNotKept_whileServerDoesNotRead() async {
        // In a process of its own, as the memory belongs to the whole process.
        await #expect(processExitsWith: .success) {
            try await ScriptedOrigin.run(readsBodies: false) { _, _ in
                [.stopReading, .hold]
            } _: { origin in
                try await AskingTests.withEngine { engine in
                    let owner = Caller(uid: 7, isAdmin: false)
                    let body = JSON.string(String(repeating: "{{input}}", count: RunMemoryTests.expressions))
                    let put: JSON = [
                        "type": "url", "url": .string(origin.url("/x")), "method": "PUT", "body": body,
                    ]
                    let input = JSON.string(String(repeating: "x", count: 700))
                    let json: JSON = [
                        "source": ["type": "value", "value": input], "then": [["then": ["source": put]]],
                    ]
                    let spec = try engine.admission.spec(json, from: owner)
                    let new = NewJob(spec)
                    let before = RunMemoryTests.resident()
                    let ids = await engine.ask(
                        .submit(Array(repeating: new, count: RunMemoryTests.jobs)), for: owner
                    ).submitted
                    #expect(ids?.count == RunMemoryTests.jobs)
                    await origin.log.reaches(RunMemoryTests.jobs)
                    let growth = RunMemoryTests.resident() - before
                    #expect(growth < RunMemoryTests.most, "\(growth) KiB are kept")
                }
            }
        }
    }
}
