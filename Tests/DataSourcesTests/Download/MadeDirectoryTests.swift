import DataSources
import DeferredKit
import Dispatch
import Foundation
import Glibc
import JobModel
import Synchronization
import SystemPackage
import TestOrigin
import Testing

/// Directories that one download made and gives up while another is on its way into them.
@Suite struct MadeDirectoryTests {
    private static let script: ScriptedOrigin.Script = { request, _ in
        request.path == "/gone"
            ? [.head("404 Not Found", [("Content-Length", "0")])]
            : [.head("200 OK", [("Content-Length", "1")]), .send("x")]
    }

    private func download(_ origin: ScriptedOrigin, _ path: String, to target: String) -> JSON {
        ["type": "download", "url": .string(origin.url(path)), "path": .string(target)]
    }

    /// The second one has reserved its name in what the first one made, and nothing is there yet.
    @Test(arguments: ["the walk", "the transfer"])
    func directory_stays_whenAnotherDownloadIsAboutToWriteThere(failing: String) async throws {
        let (isOver, second) = (DispatchSemaphore(value: 0), AsyncStream.makeStream(of: Void.self))
        let (made, reserved) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
        var files = FileOperations.real
        files.makeDirectory = { directory, name, mode throws(Errno) in
            guard name == "deep" else { return try FileOperations.real.makeDirectory(directory, name, mode) }
            made.continuation.yield()
            reserved.wait()
            if failing == "the walk" { throw Errno.noSpace }
            try FileOperations.real.makeDirectory(directory, name, mode)
        }
        files.openBeneath = { directory, name, flags, mode throws(Errno) in
            if name == "y.part", flags & O_CREAT != 0 {
                reserved.signal()
                second.continuation.yield()
                isOver.wait()
            }
            return try FileOperations.real.openBeneath(directory, name, flags, mode)
        }
        try await Workbench.run(against: Self.script, files: files) { origin, bench in
            let first = try bench.start(download(origin, "/gone", to: "new/deep/x"))
            for await _ in made.stream { break }
            let other = try bench.start(download(origin, "/x", to: "new/y"), job: 2)
            for await _ in second.stream { break }
            let error = try await bench.failure(of: first)
            isOver.signal()
            #expect(error.kind == (failing == "the walk" ? .storage : .http))
            #expect(try await other.get()["path"]?.string == bench.downloads + "/new/y")
            #expect(bench.names(below: bench.downloads) == ["new", "new/y"])
        }
    }

    /// The second one has passed what the first one made, and is about to make a directory in it.
    @Test func directory_isMadeAgain_whenItGoesWhileAnotherDownloadPassesIt() async throws {
        let (passed, isGone) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
        let passes = Mutex(0)
        var files = FileOperations.real
        files.makeDirectory = { directory, name, mode throws(Errno) in
            if name == "other",
                passes.withLock({ passes in
                    passes += 1
                    return passes == 1
                })
            {
                passed.continuation.yield()
                isGone.wait()
            }
            try FileOperations.real.makeDirectory(directory, name, mode)
        }
        let gate = OriginGate()
        let script: ScriptedOrigin.Script = { request, count in
            (request.path == "/gone" ? [.wait(gate)] : []) + Self.script(request, count)
        }
        try await Workbench.run(against: script, files: files) { origin, bench in
            let first = try bench.start(download(origin, "/gone", to: "new/x"))
            await origin.log.reaches(1)
            let other = try bench.start(download(origin, "/x", to: "new/other/y"), job: 2)
            for await _ in passed.stream { break }
            gate.open()
            #expect(try await bench.failure(of: first).kind == .http)
            #expect(bench.names(below: bench.downloads) == [])
            isGone.signal()
            #expect(try await other.get()["path"]?.string == bench.downloads + "/new/other/y")
            #expect(bench.names(below: bench.downloads) == ["new", "new/other", "new/other/y"])
        }
    }
}
