import DataSources
import DeferredKit
import Foundation
import JobModel
import TestSupport
import Testing
import TestOrigin

/// What servers send without end does not end up in memory.
@Suite struct SteadyMemoryTests {
    private static let head = "HTTP/1.1 200 OK\r\n"

    /// A block of the flood that is sent again and again, so that the server of the test needs no memory either.
    private static func flood(_ text: String, blocks: Int) -> [OriginStep] {
        Array(repeating: .send(String(repeating: text, count: (64 << 10) / text.utf8.count)), count: blocks)
    }

    private static func script(_ bomb: [UInt8]) -> ScriptedOrigin.Script {
        { request, _ in
            switch request.path {
            case "/body": [.send(head + "\r\n"), .stream(256 << 20), .close]
            case "/file": [.send(head + "Content-Length: \(128 << 20)\r\n\r\n"), .stream(128 << 20)]
            case "/header": [.send(head)] + flood("X-Fill: some text\r\n", blocks: 400) + [.close]
            case "/informational":
                flood("HTTP/1.1 103 Hints\r\nLink: <x>\r\n\r\n", blocks: 50) + [
                    .send(head + "Content-Length: 2\r\n\r\n{}")
                ]
            case "/chunks":
                [.send(head + "Transfer-Encoding: chunked\r\n\r\n")] + flood("1\r\n \r\n", blocks: 300) + [.close]
            case "/trailers":
                [.send(head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")]
                    + flood("X-Fill: some text\r\n", blocks: 400) + [.close]
            case "/bomb":
                [
                    .send(head + "Content-Encoding: gzip\r\nContent-Length: \(bomb.count)\r\n\r\n"), .send(bomb),
                ]
            default: [.send(head + "Content-Length: 2\r\n\r\n{}")]
            }
        }
    }

    /// Zeros as gzip has them, without having them here.
    private static func bomb(of bytes: Int) throws -> [UInt8] {
        try SystemProgram(["/bin/sh", "-c", "head -c \(bytes) /dev/zero | gzip -nc"]).output
    }

    /// The most memory that this process had so far, in KiB.
    private static func peak() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }
        return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }

    /// Below the limit, and the server never ends it: what a slot has in memory is bounded all the while.
    @Test func bombsThatLinger_takeNoMoreThanOtherBodies() async {
        await #expect(processExitsWith: .success) {
            // All of it but the checksum and the length at its end.
            let bomb = try SteadyMemoryTests.bomb(of: 64_000_000).dropLast(8)
            #expect(bomb.count < 100_000)
            let steps: [OriginStep] = [
                .send(SteadyMemoryTests.head + "Content-Encoding: gzip\r\n\r\n"), .send(Array(bomb)), .hold,
            ]
            try await Workbench.run(against: { _, _ in steps }) {
                $0.downloads.minimumFree = 0
            } _: { origin, bench in
                let before = SteadyMemoryTests.peak()
                for job in 1...8 {
                    let bomb = try bench.start(["type": "url", "url": .string(origin.url("/x"))], job: JobID(job))
                    await bomb.progress(reaches: 64_000_000)
                }
                let growth = SteadyMemoryTests.peak() - before
                #expect(growth < 48 << 10, "the peak grew by \(growth) KiB")
            }
        }
    }

    @Test func memory_staysWhatItIs_whateverServersSend() async {
        // In a process of its own, as the peak belongs to the whole process.
        await #expect(processExitsWith: .success) {
            let bomb = try SteadyMemoryTests.bomb(of: 256 << 20)
            #expect(bomb.count < 1 << 20)
            try await Workbench.run(against: SteadyMemoryTests.script(bomb)) {
                $0.limits.body = 1 << 20
                $0.downloads.minimumFree = 0
            } _: { origin, bench in
                func ask(_ type: String, _ path: String) async throws -> JobError? {
                    let members: [String: JSON] = type == "download" ? ["path": "file"] : [:]
                    do {
                        _ = try await bench.result(.source(type, origin.url(path), members))
                        return nil
                    } catch let error as JobError {
                        return error
                    }
                }
                for type in ["url", "json"] { #expect(try await ask(type, "/good") == nil) }
                let before = SteadyMemoryTests.peak()
                var growths: [String] = []
                for type in ["url", "json"] {
                    for path in ["/body", "/header", "/chunks", "/trailers", "/bomb"] {
                        let error = try await ask(type, path)
                        growths.append("\(type) \(path) \(SteadyMemoryTests.peak() - before)")
                        #expect(error?.kind == .tooLarge, "\(type) \(path): \(error?.message ?? "succeeded")")
                    }
                    let error = try await ask(type, "/informational")
                    #expect(error == nil)
                    growths.append("\(type) info \(SteadyMemoryTests.peak() - before)")
                }
                let error = try await ask("download", "/file")
                #expect(error == nil)
                // The documents themselves, buffers of sockets and files; the floods are hundreds of MiB.
                let growth = SteadyMemoryTests.peak() - before
                #expect(growth < 32 << 10, "the peak grew by \(growth) KiB: \(growths)")
            }
        }
    }
}
