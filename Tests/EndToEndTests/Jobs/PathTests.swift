import Foundation
import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// Paths that lead to something else than an ordinary file, or to somewhere else than when they were looked at.
@Suite struct PathTests {
    // MARK: Special files

    private static let kinds = ["fifo", "socket", "directory", "null", "zero", "disk"]

    /// Makes a special file at `path` that must not be opened, and returns its identity.
    private func make(_ kind: String, at path: String) throws -> String {
        let isMade =
            switch kind {
            case "fifo": mkfifo(path, 0o600) == 0
            case "directory": mkdir(path, 0o700) == 0
            case "socket": mknod(path, S_IFSOCK | 0o600, 0) == 0
            case "null": mknod(path, S_IFCHR | 0o600, 1 << 8 | 3) == 0
            case "zero": mknod(path, S_IFCHR | 0o600, 1 << 8 | 5) == 0
            default: mknod(path, S_IFBLK | 0o600, 7 << 8) == 0
            }
        try #require(isMade, "no \(kind): \(String(cString: strerror(errno)))")
        return try status(path)
    }

    /// Inode, mode and device numbers.
    private func status(_ path: String) throws -> String {
        try SystemProgram(["/usr/bin/stat", "-c", "%i %f %t %T", path]).outputText
    }

    /// Special files are never opened, so no FIFO blocks the daemon and no device acts.
    @Test(.enabled(if: geteuid() == 0, "making devices needs root"), arguments: kinds)
    func path_isAnsweredWithoutOpening_whenItIsNoOrdinaryFile(kind: String) async throws {
        try await GuidedOrigin.withDaemon({ _, _ in .text("new") }) { origin, daemon, wire in
            for exists in ["fail", "skip", "rename", "replace", "validate"] {
                let directory = daemon.downloads + "/" + exists
                try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
                let before = try make(kind, at: directory + "/x")
                let events = try FileEvents(in: [directory])
                let job = try await wire.run(
                    .download(origin.url("/x"), to: exists + "/x", ["exists": .string(exists)]))
                if exists == "rename" {
                    #expect(job["result"]?["path"]?.string == "\(directory)/x-1", "\(job)")
                    #expect(!events.opened().contains("x"))
                    #expect(try Files.bytes("\(directory)/x-1") == Array("new".utf8))
                } else {
                    #expect(job["error"]?["kind"] == "exists", "\(job)")
                    #expect(job["error"]?["message"]?.string?.contains("\(directory)/x\"") == true, "\(job)")
                    #expect(events.opened() == [])
                    #expect(Files.names(in: directory) == ["x"])
                }
                #expect(try status(directory + "/x") == before)
            }
            let before = try make(kind, at: daemon.downloads + "/x")
            let part = try make(kind, at: daemon.downloads + "/y.part")
            let events = try FileEvents(in: [daemon.downloads])
            let upload: JSON = ["type": "upload", "url": origin.url("/store"), "path": "x"]
            let error = try await wire.fail(["source": upload])
            #expect(error["kind"] == "invalid" && error["message"]?.string?.contains("/x\"") == true, "\(error)")
            let taken = try await wire.fail(.download(origin.url("/x"), to: "y"))
            #expect(taken["kind"] == "exists", "\(taken)")
            #expect(events.opened() == [])
            #expect(try status(daemon.downloads + "/x") == before)
            #expect(try status(daemon.downloads + "/y.part") == part)
            #expect(origin.count("/store") == 0)
        }
    }

    // MARK: Changes during use

    /// Whatever happens to names, the daemon writes the file that it opened at the start, and opens none by name again.
    @Test(arguments: ["nothing", "the part", "the part for a while", "the directory"])
    func file_isTheOneOpenedFirst_whateverItsNameIsGivenTo(swapped: String) async throws {
        try await GuidedOrigin.withDaemon { origin, daemon, wire in
            let (directory, away) = (daemon.downloads + "/sub", daemon.directory.path + "/away")
            let evil = daemon.directory.path + "/evil"
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            try #require(mkdir(evil, 0o777) == 0)
            try Data("evil".utf8).write(to: URL(filePath: evil + "/x.part"))
            let events = try FileEvents(in: [daemon.downloads, directory, evil])
            let submitted = try await wire.call(
                "job.submit", .download(origin.url("/x"), to: "sub/x", members: ["watch": true]))
            let job = try #require(submitted["job"]?.int)
            let exchange = try await origin.exchange("/x")
            exchange.sendHead("200 OK", [("Content-Length", "100000"), ("ETag", "\"1\"")])
            exchange.send(Array(Sample.content[..<50_000]))
            _ = try await wire.next("progress") { $0.method == "job.progress" }
            let part = directory + "/x.part"
            switch swapped {
            case "the part", "the part for a while":
                try #require(rename(part, away) == 0 && rename(evil + "/x.part", part) == 0)
                if swapped == "the part for a while" { try #require(rename(away, part) == 0) }
            case "the directory":
                try #require(rename(directory, away) == 0 && symlink(evil, directory) == 0)
            default: break
            }
            exchange.send(Array(Sample.content[50_000...]))
            exchange.finish()
            let ended = try await wire.wait(job)
            #expect(events.opened() == ["sub", "x.part"])
            if swapped == "the part" {
                #expect(ended["error"]?["kind"] == "storage", "\(ended)")
                #expect(try Files.bytes(away) == Sample.content)
                return
            }
            #expect(ended["result"]?["sha256"]?.string == Sample.sha256, "\(ended)")
            let written = swapped == "the directory" ? away : directory
            #expect(try Files.bytes(written + "/x") == Sample.content)
            #expect(Files.names(in: written) == ["x"])
            if swapped != "the part for a while" { #expect(Files.names(in: evil) == ["x.part"]) }
        }
    }

    /// The reported digest and the sent bytes belong to the same open file.
    @Test func file_isOpenedOnce_whenItIsReadForADigest() async throws {
        try await GuidedOrigin.withDaemon({ _, _ in .text("kept") }) { origin, daemon, wire in
            let directory = daemon.downloads + "/sub"
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            try Data(Sample.content).write(to: URL(filePath: directory + "/x"))
            let checksum = JSON.string("sha256:" + Sample.sha256)
            let sources: [JSON] = [
                [
                    "type": "download", "url": origin.url("/x"), "path": "sub/x", "exists": "skip",
                    "checksum": checksum,
                ],
                ["type": "upload", "url": origin.url("/x"), "path": "sub/x", "checksum": checksum],
            ]
            for source in sources {
                let events = try FileEvents(in: [daemon.downloads, directory])
                let result = try await wire.succeed(["source": source])
                #expect(result["sha256"]?.string == Sample.sha256)
                #expect(events.opened() == ["sub", "x"], "\(source)")
            }
        }
    }
}
