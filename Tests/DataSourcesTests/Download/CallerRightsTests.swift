import DataSources
import Foundation
import Glibc
import JobModel
import Synchronization
import SystemPackage
import TestSupport
import Testing
import TestOrigin

/// What callers of a system instance can make it read and write. The tests give files to other users, so they need
/// root.
@Suite(.enabled(if: geteuid() == 0, "giving files to other users needs root"))
struct CallerRightsTests {
    private static let ann: UInt32 = 61_001
    private static let bob: UInt32 = 61_002
    private static let staff: UInt32 = 61_100

    /// A system instance, in which Ann is in the group `staff`.
    private func run(
        files: FileOperations = .real, _ body: @escaping @Sendable (TestOrigin, Workbench) async throws -> Void
    ) async throws {
        var files = files
        files.groups = { user in user == Self.ann ? [Self.staff] : [] }
        try await Workbench.run(serving: ["/x": OriginResource(text: "new", etag: "\"1\"")], files: files) {
            $0.downloads.isSystemInstance = true
        } _: { origin, bench in
            try await body(origin, bench)
        }
    }

    private func source(_ origin: TestOrigin, _ path: String, _ exists: String = "fail") -> JSON {
        .download(origin.url("/x"), to: path, ["exists": .string(exists)])
    }

    private func directory(_ path: String, owner: UInt32 = 0, group: UInt32 = 0, mode: UInt32) {
        mkdir(path, 0o700)
        chown(path, owner, group)
        chmod(path, mode)
    }

    private func file(_ bench: Workbench, _ path: String, owner: UInt32, mode: UInt32, _ text: String) throws {
        try bench.write(Array(text.utf8), to: path)
        chown(path, owner, owner)
        chmod(path, mode)
    }

    /// Whether a process of `user` may open the file so.
    private func may(_ user: UInt32, _ flags: String, _ path: String) throws -> Bool {
        try SystemProgram([
            "/usr/bin/setpriv", "--reuid", "\(user)", "--regid", "\(user)", "--clear-groups", "/bin/sh", "-c",
            ": \(flags) \"$1\"", "-", path,
        ]).status == 0
    }

    @Test func ownFile_isTheCallersAlone_alsoInAnAbsoluteRoot() async throws {
        try await run { origin, bench in
            directory(bench.root + "/open", mode: 0o777)
            for path in ["deep/x", bench.root + "/open/deep/x"] {
                let result = try await bench.result(source(origin, path), owner: Self.ann)
                let made = try #require(result["path"]?.string)
                for flags in ["<", ">>"] {
                    #expect(try may(Self.ann, flags, made))
                    #expect(try !may(Self.bob, flags, made))
                }
            }
        }
    }

    @Test func upload_sends_whatItsCallerMayRead_andNothingElse() async throws {
        try await run { origin, bench in
            origin["/store"] = OriginResource(text: "kept")
            func upload(_ path: String) -> JSON {
                ["type": "upload", "url": .string(origin.url("/store")), "path": .string(bench.root + "/" + path)]
            }
            // One need not be able to write where a file lies, nor to list it.
            directory(bench.root + "/open", mode: 0o711)
            directory(bench.root + "/closed", owner: Self.bob, mode: 0o700)
            try file(bench, bench.root + "/open/all", owner: 0, mode: 0o644, "all")
            try file(bench, bench.root + "/open/staff", owner: Self.bob, mode: 0o640, "staff")
            chown(bench.root + "/open/staff", Self.bob, Self.staff)
            try file(bench, bench.root + "/open/bob", owner: Self.bob, mode: 0o600, "bob")
            try file(bench, bench.root + "/closed/all", owner: Self.bob, mode: 0o644, "closed")
            let sent: [(user: UInt32, names: [String])] = [
                (Self.ann, ["open/all", "open/staff"]),
                (Self.bob, ["open/all", "open/staff", "open/bob", "closed/all"]),
            ]
            for (user, names) in sent {
                for name in ["open/all", "open/staff", "open/bob", "closed/all"] {
                    if names.contains(name) {
                        _ = try await bench.result(upload(name), owner: user)
                        #expect(origin.log.last("/store")?.body == bench.bytes(of: bench.root + "/" + name))
                    } else {
                        let count = origin.log.count()
                        #expect(try await bench.failure(upload(name), owner: user).kind == .policy, "\(user) \(name)")
                        #expect(origin.log.count() == count)
                    }
                }
            }
            // A directory that one may not pass tells nothing of what is in it.
            #expect(try await bench.failure(upload("closed/absent"), owner: Self.ann).kind == .policy)
            #expect(try await bench.failure(upload("open/absent"), owner: Self.ann).kind == .storage)
            // Each caller's relative path is their own.
            _ = try await bench.result(source(origin, "mine"), owner: Self.ann)
            let relative: JSON = ["type": "upload", "url": .string(origin.url("/store")), "path": "mine"]
            _ = try await bench.result(relative, owner: Self.ann)
            #expect(try await bench.failure(relative, owner: Self.bob).kind == .storage)
            let foreign: JSON = [
                "type": "upload", "url": .string(origin.url("/store")),
                "path": .string(bench.downloads + "/\(Self.ann)/mine"),
            ]
            #expect(try await bench.failure(foreign, owner: Self.bob).kind == .policy)
        }
    }

    @Test func rootBelowACallersDirectory_isNotFollowed_whenItBecomesALink() async throws {
        let home = Mutex("")
        try await Workbench.run(serving: ["/x": OriginResource(text: "new")]) {
            $0.downloads.isSystemInstance = true
            let parent = ($0.downloads.directory as NSString).deletingLastPathComponent + "/home"
            home.withLock { $0 = parent }
            directory(parent, owner: Self.ann, mode: 0o755)
            directory(parent + "/files", owner: Self.ann, mode: 0o755)
            $0.downloads.roots = [parent + "/files"]
        } _: { origin, bench in
            let parent = home.withLock { $0 }
            let outside = bench.directory + "/outside"
            directory(outside, mode: 0o777)
            rename(parent + "/files", parent + "/before")
            symlink(outside, parent + "/files")
            // The same holds for a link further up.
            for user in [Self.ann, 0] {
                let error = try await bench.failure(source(origin, parent + "/files/x"), owner: user)
                #expect(error.kind == .policy)
            }
            #expect(bench.names(below: outside) == [])
            #expect(origin.log.count() == 0)
        }
    }

    @Test func answer_isTheSame_whateverIsBelowADirectoryThatTheCallerMayNotPass() async throws {
        try await run { origin, bench in
            directory(bench.root + "/closed", mode: 0o700)
            directory(bench.root + "/closed/there", mode: 0o777)
            try file(bench, bench.root + "/closed/there/x", owner: Self.bob, mode: 0o666, "bob's")
            for exists in ["fail", "replace", "rename", "skip", "validate"] {
                var messages: Set<String> = []
                for name in ["there/x", "gone/x", "x", "there"] {
                    let path = bench.root + "/closed/" + name
                    let error = try await bench.failure(source(origin, path, exists), owner: Self.ann)
                    #expect(error.kind == .policy)
                    messages.insert(error.message.replacing(path, with: ""))
                }
                #expect(messages.count == 1)
            }
            #expect(origin.log.count() == 0)
        }
    }

    @Test(arguments: ["skip", "validate"])
    func fileOfAnother_isToldNothingOf_whenTheCallerMayNotReadIt(exists: String) async throws {
        try await run { origin, bench in
            directory(bench.root + "/shared", mode: 0o777)
            let path = bench.root + "/shared/x"
            // Bob's download is remembered with its digest, and Bob may use that.
            let first = try await bench.result(source(origin, path), owner: Self.bob)
            let digest = try #require(first["sha256"]?.string)
            let count = origin.log.count()
            let error = try await bench.failure(source(origin, path, exists), job: 2, owner: Self.ann)
            #expect(error.kind == .policy)
            #expect(!error.message.contains(digest))
            #expect(origin.log.count() == count)
            let again = try await bench.result(source(origin, path, exists), job: 3, owner: Self.bob)
            #expect(again["etag"] == "\"1\"")
        }
    }

    @Test func recordOfAnother_isNotUsed_whenTheFileMayBeRead() async throws {
        try await run { origin, bench in
            directory(bench.root + "/shared", mode: 0o777)
            let path = bench.root + "/shared/x"
            _ = try await bench.result(source(origin, path), owner: Self.bob)
            let list = try #require(try bench.accessList(of: path))
            #expect(list == AccessList([.read, .write], for: [Self.bob]))
            let files = FileOperations.real
            let descriptor = try files.openFromRoot(bench.root + "/shared", O_RDONLY)
            let opened = try files.openBeneath(descriptor, "x", O_RDWR, 0)
            try files.setAccessList(opened, AccessList([.read, .write], for: [Self.ann, Self.bob]), false)
            files.close(opened)
            files.close(descriptor)
            let result = try await bench.result(source(origin, path, "skip"), job: 2, owner: Self.ann)
            #expect(result["etag"] == nil || result["etag"] == .null)
            #expect(result["size"] == 3)
        }
    }

    @Test func directoryOfAGroup_isWritten_forItsMembersOnly() async throws {
        try await run { origin, bench in
            directory(bench.root + "/staff", group: Self.staff, mode: 0o770)
            let path = bench.root + "/staff/x"
            let error = try await bench.failure(source(origin, path), owner: Self.bob)
            #expect(error.kind == .policy)
            _ = try await bench.result(source(origin, path), owner: Self.ann)
            #expect(bench.bytes(of: path) == Array("new".utf8))
            // One of which the group may only read the names.
            directory(bench.root + "/read", group: Self.staff, mode: 0o750)
            let refused = try await bench.failure(source(origin, bench.root + "/read/x"), owner: Self.ann)
            #expect(refused.kind == .policy)
        }
    }

    @Test func directoryWithAnAccessList_isWritten_forWhomItNames() async throws {
        try await run { origin, bench in
            directory(bench.root + "/listed", mode: 0o700)
            let files = FileOperations.real
            let descriptor = try files.openFromRoot(bench.root + "/listed", O_RDONLY)
            try files.setAccessList(descriptor, AccessList([.read, .write, .execute], for: [Self.ann]), false)
            files.close(descriptor)
            let error = try await bench.failure(source(origin, bench.root + "/listed/x"), owner: Self.bob)
            #expect(error.kind == .policy)
            _ = try await bench.result(source(origin, bench.root + "/listed/x"), owner: Self.ann)
        }
    }

    @Test(arguments: ["replace", "validate"])
    func stickyDirectory_letsOnlyOwnersReplace(exists: String) async throws {
        try await run { origin, bench in
            directory(bench.root + "/sticky", mode: 0o1777)
            let path = bench.root + "/sticky/x"
            try file(bench, path, owner: Self.bob, mode: 0o666, "bob's")
            let error = try await bench.failure(source(origin, path, exists), owner: Self.ann)
            #expect(error.kind == .policy)
            #expect(bench.bytes(of: path) == Array("bob's".utf8))
            #expect(origin.log.count() == 0)
            _ = try await bench.result(source(origin, path, exists), owner: Self.bob)
            #expect(bench.bytes(of: path) == Array("new".utf8))
            // What the daemon made for a caller is theirs to replace.
            _ = try await bench.result(source(origin, path, "replace"), job: 2, owner: Self.bob)
            let again = try await bench.failure(source(origin, path, "replace"), job: 3, owner: Self.ann)
            #expect(again.kind == .policy)
        }
    }

    @Test(arguments: ["file", "link", "hard link", "fifo", "other's part"])
    func part_survives_whenItIsNotOfTheCallersDownload(kind: String) async throws {
        try await run { origin, bench in
            directory(bench.root + "/shared", mode: 0o777)
            let part = bench.root + "/shared/x.part"
            switch kind {
            case "file": try file(bench, part, owner: Self.bob, mode: 0o600, "bob's")
            case "link": symlink(bench.root + "/nowhere", part)
            case "hard link":
                try file(bench, bench.root + "/other", owner: 0, mode: 0o600, "other")
                link(bench.root + "/other", part)
            case "fifo": mkfifo(part, 0o600)
            default:
                _ = try await bench.result(source(origin, bench.root + "/shared/x"), owner: Self.bob)
                rename(bench.root + "/shared/x", part)
            }
            var before = stat()
            lstat(part, &before)
            let error = try await bench.failure(source(origin, bench.root + "/shared/x"), job: 2, owner: Self.ann)
            #expect(error.kind == .exists)
            var after = stat()
            #expect(lstat(part, &after) == 0 && after.st_ino == before.st_ino)
        }
    }

    /// Between a directory's making and its opening another can get its name.
    @Test func directory_isNotGivenAway_whenItIsSwappedForAnotherCallers() async throws {
        var files = FileOperations.real
        let shared = Mutex("")
        files.sync = { (file) throws(Errno) in
            try FileOperations.real.sync(file)
            let root = shared.withLock(\.self)
            guard !root.isEmpty, access(root + "/new", F_OK) == 0 else { return }
            rename(root + "/new", root + "/away")
            rename(root + "/private", root + "/new")
        }
        try await run(files: files) { origin, bench in
            let root = bench.root + "/shared"
            directory(root, mode: 0o777)
            _ = try await bench.result(source(origin, root + "/private/x"), owner: Self.bob)
            let before = try bench.accessList(of: root + "/private")
            shared.withLock { $0 = root }
            let error = try await bench.failure(source(origin, root + "/new/x"), job: 2, owner: Self.ann)
            #expect(error.kind == .policy)
            #expect(try bench.accessList(of: root + "/new") == before)
        }
    }

    @Test func download_failsWithStorage_whereThereAreNoAccessLists() async throws {
        var files = FileOperations.real
        files.setAccessList = { _, _, _ throws(Errno) in throw Errno.notSupported }
        try await run(files: files) { origin, bench in
            directory(bench.root + "/open", mode: 0o777)
            for path in ["x", bench.root + "/open/x", bench.root + "/open/new/deep/x"] {
                let error = try await bench.failure(source(origin, path), owner: Self.ann)
                #expect(error.kind == .storage)
                #expect(error.message.contains("ACL"))
            }
            #expect(bench.names(below: bench.root + "/open") == [])
        }
    }

    @Test func download_needsNoAccessList_whenTheCallerIsTheDaemonsUser() async throws {
        var files = FileOperations.real
        files.setAccessList = { _, _, _ throws(Errno) in throw Errno.notSupported }
        try await run(files: files) { origin, bench in
            let result = try await bench.result(source(origin, "d/x"), owner: geteuid())
            let path = try #require(result["path"]?.string)
            for (path, mode) in [(path, 0o600), (bench.downloads + "/\(geteuid())/d", 0o700)] {
                let attributes = try FileManager.default.attributesOfItem(atPath: path)
                #expect(attributes[.posixPermissions] as? Int == mode)
            }
        }
    }
}
