import DeferredKit
import Foundation
import Glibc
import JobModel
import NIOCore
import NIOEmbedded
import SystemPackage
import Synchronization
import Testing
import TestOrigin

@testable import DataSources

/// What requests and programs are given is not kept in memory for as long as a server or a program likes.
@Suite struct SentMemoryTests {
    /// What this process has of its own in memory, in KiB.
    private static func resident() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon") }
        return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }

    /// In KiB: two of the four, as what was let go may be given back a moment later.
    fileprivate static let most = 128 << 10

    /// So long that the allocator gives it back at once.
    private static func long() -> JSON { .string(String(repeating: "x", count: 64 << 20)) }

    private static func put(_ url: String, _ body: JSON, _ type: String = "url") -> JSON {
        ["type": .string(type), "url": .string(url), "method": "PUT", "body": body]
    }

    @Test(arguments: [64 << 10, (64 << 10) + 1, 1_000_000], ["url", "json"])
    func body_arrivesWhole_howeverLongItIs(_ size: Int, type: String) async throws {
        let body = String(repeating: "0123456789", count: size / 10 + 1).prefix(size)
        // It is sent again from its beginning.
        try await Workbench.run(serving: ["/a": .redirect(307, to: "/b"), "/b": .json("1")]) { origin, bench in
            let source = Self.put(origin.url("/a"), .string(String(body)), type)
            // The second time over a connection that is there.
            for _ in 0..<2 {
                _ = try await bench.result(source)
                #expect(origin.log.last("/b")?.body == Array(body.utf8))
            }
            #expect(!bench.names(below: bench.directory).contains { $0.hasSuffix(".sent") }, "nothing stays behind")
        }
    }

    @Test func body_isNotKeptInMemory_whileServerDoesNotRead() async {
        // In a process of its own, as the memory belongs to the whole process.
        await #expect(processExitsWith: .success) {
            try await Workbench.run(against: { _, _ in [.stopReading, .hold] }, readsBodies: false) { origin, bench in
                let before = SentMemoryTests.resident()
                let running = try (1...4).map { job in
                    try bench.start(
                        SentMemoryTests.put(origin.url("/x"), SentMemoryTests.long()), job: JobID(job))
                }
                await origin.log.reaches(4)
                let growth = SentMemoryTests.resident() - before
                #expect(growth < SentMemoryTests.most, "\(growth) KiB are kept")
                for one in running { one.cancel() }
            }
        }
    }

    @Test func input_isNotKeptInMemory_whileProgramRuns() async throws {
        await #expect(processExitsWith: .success) {
            try await ProgramSourceTests.run { bench async throws in
                let before = SentMemoryTests.resident()
                let started = AsyncStream<Void>.makeStream()
                let script = "echo '{\"progress\":{\"completed\":1}}'; exec sleep 1000"
                let running = try (1...4).map { job in
                    try bench.start(
                        ProgramSourceTests.configured(script, ["input": SentMemoryTests.long()]), job: JobID(job))
                }
                for one in running { one.onProgress { _ in started.continuation.yield() } }
                var left = running.count
                for await _ in started.stream {
                    left -= 1
                    if left == 0 { break }
                }
                let growth = SentMemoryTests.resident() - before
                #expect(growth < SentMemoryTests.most, "\(growth) KiB are kept")
                for one in running { one.cancel() }
                for one in running { _ = try await bench.failure(of: one) }
            }
        }
    }

    /// A program has the file of its input until its group ends, and need not read it.
    @Test func inputsInFiles_countAsStored_ofOneUser() async throws {
        try await ProgramSourceTests.run { bench async throws in
            bench.roomForBody.withLock { $0 = 1_500_000 }
            let input: [String: JSON] = ["input": .string(String(repeating: "x", count: 1_000_000))]
            let source = ProgramSourceTests.configured(
                "echo '{\"progress\":{\"completed\":1}}'; exec sleep 1000", input)
            let started = AsyncStream<Void>.makeStream()
            let first = try bench.start(source)
            first.onProgress { _ in started.continuation.yield() }
            for await _ in started.stream { break }
            let other = ProgramSourceTests.shell("wc -c", input)
            let second = try await bench.failure(other, job: 2)
            #expect(second.kind == .storage && second.postponed == 5 && second.isRetryable, "\(second)")
            // It counts together with what is sent.
            let sent = try await bench.failure(Self.put("http://127.0.0.1:1/x", input["input"] ?? nil), job: 3)
            #expect(sent.kind == .storage && sent.postponed == 5, "\(sent)")
            // Others have room of their own.
            #expect(try await bench.result(other, job: 4, owner: 1001)["output"] == "1000000")
            first.cancel()
            _ = try await bench.failure(of: first)
            #expect(try await bench.result(other, job: 5)["output"] == "1000000")
            bench.roomForBody.withLock { $0 = 999_999 }
            let third = try await bench.failure(other, job: 6)
            #expect(third.kind == .tooLarge && third.postponed == nil && !third.isRetryable, "\(third)")
        }
    }

    @Test func body_isPutOff_whileTheDiskOfTheStateHasLittleRoom() async throws {
        let free = Mutex<Int64>(1_000_099)
        let body = JSON.string(String(repeating: "x", count: 1_000_000))
        var files = FileOperations.real
        files.disk = { _ in (1, .max, free.withLock(\.self)) }
        try await Workbench.run(
            serving: ["/x": .json("1")], files: files, { $0.downloads.minimumFree = 100 }
        ) { origin, bench in
            let error = try await bench.failure(Self.put(origin.url("/x"), body))
            #expect(error.kind == .storage && error.postponed == 5 && error.isRetryable, "\(error)")
            free.withLock { $0 += 1 }
            #expect(try await bench.result(Self.put(origin.url("/x"), body))["status"] == 200)
        }
    }

    @Test func transfer_endsAtOnce_whileItsBodyIsWritten() async throws {
        var files = FileOperations.real
        let writes = AsyncStream.makeStream(of: Void.self)
        let turnstile = DispatchSemaphore(value: 0)
        files.writeAt = { file, offset, bytes throws(Errno) in
            writes.continuation.yield()
            turnstile.wait()
            try FileOperations.real.writeAt(file, offset, bytes)
        }
        let clock = NIOAsyncTestingEventLoop()
        let source = Self.put("http://127.0.0.1:1/x", .string(String(repeating: "x", count: 100_000)))
        try await Workbench.run { first in
            try await first.restarted(files: files, timers: clock) { bench in
                var started = writes.stream.makeAsyncIterator()
                let late = try bench.start(source, timeout: 50)
                _ = await started.next()
                await clock.advanceTime(by: .seconds(50))
                #expect(try await bench.failure(of: late).kind == .timeout)
                let cancelled = try bench.start(source, job: 2)
                _ = await started.next()
                cancelled.cancel()
                await #expect(throws: CancellationError.self) { try await cancelled.get() }
                for _ in 0..<2 { turnstile.signal() }
            }
        }
    }
}
