@testable import DataSources
import DeferredKit
import Foundation
import JobModel
import NIOPosix
import Synchronization
import TestOrigin
import Testing

/// The part of an unfinished file, and the path that it holds.
extension DownloadResumeTests {
    /// Until the job that waits for its retry has ended, the file is being downloaded by it.
    @Test(arguments: [true, false]) func path_isTaken_whileAJobWaitsForItsRetry(isCancelled: Bool) async throws {
        let script = Misbehaviour.cut(Self.first, times: 1, etag: "\"a\"")
        try await Workbench.run(against: script) { origin, bench in
            bench.unfinished.withLock { $0 = [1] }
            #expect(try await bench.failure(download(origin)).isRetryable)
            let other = try await bench.failure(download(origin), job: 2)
            #expect(other.kind == .exists && other.message.contains("by job 1"), "\(other)")
            #expect(part(bench)?.count == 100_000)
            let renamed = try await bench.result(
                download(origin, ["exists": "rename"]), job: 3)
            #expect(renamed["path"]?.string?.hasSuffix("/x") == false)
            bench.unfinished.withLock { $0 = [] }
            if isCancelled {
                await bench.library.discard(try #require(bench[checkpoint: 1]), of: 1000)
                #expect(try await bench.result(download(origin), job: 2)["resumedFrom"] == 0)
            } else {
                let result = try await bench.result(download(origin), attempt: 2)
                #expect(result["resumedFrom"] == 100_000)
                #expect(
                    try await bench.result(
                        download(origin, ["exists": "replace"]), job: 2)["size"]
                        == 200_000)
            }
        }
    }

    /// It will not go on by itself, and must not keep others away.
    @Test func path_isFree_afterTheLastAttempt() async throws {
        let script = Misbehaviour.cut(Self.first, times: 2, etag: "\"a\"")
        try await Workbench.run(against: script) { origin, bench in
            bench.unfinished.withLock { $0 = [1] }
            _ = try await bench.failure(download(origin))
            _ = try await bench.failure(download(origin), attempt: 2)
            bench.unfinished.withLock { $0 = [] }
            #expect(try await bench.result(download(origin), job: 2)["resumedFrom"] == 0)
        }
    }

    /// An expression may give each attempt a path of its own.
    @Test func path_isFree_onceTheNextAttemptGoesElsewhere() async throws {
        let script = Misbehaviour.cut(Self.first, times: 1, etag: "\"a\"")
        try await Workbench.run(against: script) { origin, bench in
            bench.unfinished.withLock { $0 = [1] }
            _ = try await bench.failure(download(origin))
            _ = try await bench.result(download(origin, ["path": "y"]), attempt: 2)
            #expect(try await bench.result(download(origin), job: 2)["size"] == 200_000)
        }
    }

    /// Without its note, no later attempt can find it.
    @Test func part_isNotKept_whenItsNoteCannotBe() async throws {
        try await Workbench.run(against: Misbehaviour.cut(Self.first, etag: "\"a\"")) { origin, bench in
            bench.refuseNotes()
            let error = try await bench.failure(download(origin))
            #expect(error.kind == .network)
            #expect(bench.names(below: bench.downloads) == [])
        }
    }

    /// The attempt resumes under another name, or finds the file already there.
    @Test(arguments: [true, false]) func part_isRemoved_whenItIsOfNoMoreUse(isElsewhere: Bool) async throws {
        let script = Misbehaviour.cut(Self.first, times: 1, etag: "\"a\"")
        try await Workbench.run(against: script) { origin, bench in
            #expect(try await bench.failure(download(origin)).isRetryable)
            #expect(part(bench)?.count == 100_000)
            let more: [String: JSON] = isElsewhere ? ["path": "y"] : ["exists": "skip"]
            if !isElsewhere { try bench.write([1], to: bench.downloads + "/x") }
            _ = try await bench.result(download(origin, more), attempt: 2)
            #expect(bench.names(below: bench.downloads) == [isElsewhere ? "y" : "x"])
        }
    }

    /// No later attempt could tell it from another file.
    @Test func part_isNotKept_whereFilesHaveNoTimeOfTheirMaking() async throws {
        try await Workbench.run { bench in
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            let transfer = Transfer(
                bench.context(1), bench.library.rules, bench.library.shared, loop: loop, report: { _ in })
            let path = try transfer.rules.directories.path("x", owner: 1000)
            let directory = try TargetDirectory.opened(path, for: [.write, .execute], makingMissing: true, .real)
            let target = try DownloadTarget(path, in: directory, renaming: false, preferred: nil, transfer)
            let checkpoint = DownloadCheckpoint(
                url: "http://a.example/x", validator: Validator(isTag: true, text: "\"a\""), total: 2,
                directory: path.directory, name: "x", part: .init(inode: 1, createdAt: 0),
                bootID: FileOperations.real.bootID)
            let part = try #require(
                try await DownloadedPart(reopened: target, size: 1, checkpoint, nil, transfer))
            #expect(await !part.close())
        }
    }

    @Test func part_ofAnotherJob_isNotJoined() async throws {
        let script = Misbehaviour.changes(Self.first, to: Self.second, etags: ("\"a\"", "\"a\""))
        try await Workbench.run(against: script) { origin, bench in
            _ = try await bench.failure(download(origin))
            let result = try await bench.result(download(origin), job: 2)
            #expect(result["resumedFrom"] == 0)
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.second)
            // The first one, which has waited to go on, neither mixes its own with that nor replaces it.
            #expect(try await bench.failure(download(origin), attempt: 2).kind == .exists)
            #expect(bench.names(below: bench.downloads) == ["x"])
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.second)
        }
    }

    /// A note is about one file: another in its place, of whatever size, is not taken for it.
    @Test func part_isNotJoined_whenItIsAnotherFile() async throws {
        try await Workbench.run(
            against: Misbehaviour.cut(Self.first, times: 1, etag: "\"a\"")
        ) { origin, bench in
            _ = try await bench.failure(download(origin))
            let path = bench.downloads + "/x.part"
            try FileManager.default.removeItem(atPath: path)
            try bench.write(Array(Self.second.prefix(100_000)), to: path)
            chmod(path, 0o1600)
            let result = try await bench.result(download(origin), attempt: 2)
            #expect(result["resumedFrom"] == 0)
            #expect(bench.bytes(of: bench.downloads + "/x") == Self.first)
        }
    }

    @Test func discard_removesPart_ofJobThatIsCancelledBetweenAttempts() async throws {
        try await Workbench.run(against: Misbehaviour.cut(Self.first, etag: "\"a\"")) { origin, bench in
            _ = try await bench.failure(download(origin))
            let note = try #require(bench[checkpoint: 1])
            // Another user's job has no say in that directory, and another file is no part of it.
            var other = try #require(note.object)
            other["folder"] = .string(bench.directory)
            await bench.library.discard(.object(other), of: 1000)
            other["folder"] = note["folder"]
            other["part"] = ["inode": "1", "createdAt": "1"]
            await bench.library.discard(.object(other), of: 1000)
            #expect(part(bench) != nil)
            await bench.library.discard(note, of: 1000)
            #expect(bench.names(below: bench.downloads) == [])
        }
    }
}
