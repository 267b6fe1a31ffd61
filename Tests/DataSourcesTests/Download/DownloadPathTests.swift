import SystemPackage
@testable import DataSources
import DeferredKit
import Foundation
import Glibc
import JobModel
import Synchronization
import Testing
import TestOrigin

@Suite struct DownloadPathTests {
    @Test(arguments: [
        "", ".", "..", "/", "a/", "a/..", "../a", "a/../b", "a/b/..", "/etc/passwd", "/proc/self/fd/1", "x.part",
        String(repeating: "n", count: 256), String(repeating: "d/", count: 2000) + "x",
        String(repeating: "d", count: 256) + "/x", "a/./..", "a\nb", "\u{1B}[2Jx", "a\tb", "a\u{7F}", "a\u{0}b",
        "a\u{85}",
        "..\u{2F}\u{301}x/../y", "a/\u{301}b/../../x", "/etc/\u{301}x",
        "new\nfolder/x", "a\r", "\u{9B}31m", String(repeating: "ä", count: 128),
    ])
    func path_isForbidden_whenItLeadsNowhereAllowed(path: String) async throws {
        try await Workbench.run { bench in
            let error = #expect(throws: JobError.self) { try bench.library.rules.check(path: path, owner: 1) }
            #expect(error?.kind == .policy)
        }
    }

    @Test(arguments: ["a", "a/b/c", "./a", "a//b", "...", "a..b", "..a", ".hidden", "Größe", "a b", "a\u{2028}b"])
    func path_isAllowed_belowOwnFolder(path: String) async throws {
        try await Workbench.run { bench in
            try bench.library.rules.check(path: path, owner: 1)
            try bench.library.rules.check(path: bench.root + "/" + path, owner: 1)
            try bench.library.rules.check(path: bench.downloads + "/" + path, owner: 1)
        }
    }

    /// To Swift a slash and the accent behind it are one character, to the system a slash ends a name.
    @Test(arguments: ["\u{301}", "\u{FE0F}", "\u{200D}"])
    func slashBeforeAnAccent_endsAName(accent: String) throws {
        let directories = try DownloadDirectories("/srv/files")
        for text in ["alice/\(accent)x", "/srv/files/alice/\(accent)x", "./alice//\(accent)x"] {
            let path = try directories.path(text, owner: 1)
            #expect(path.directories == ["alice"] && path.name == "\(accent)x")
        }
        #expect(throws: JobError.self) { try directories.path("../\(accent)x", owner: 1) }
        #expect(throws: JobError.self) { try directories.path("/srv/files/../\(accent)x", owner: 1) }
    }

    @Test(arguments: [
        ("/", nil), ("./", ""), ("a/", "/a"), ("a/b//", "/a/b"), ("a/.", nil), ("../", nil), ("a\nb/", nil), ("", nil),
    ])
    func directory_isAllowed_whereServerMayNameFile(path: String, below: String?) throws {
        let directories = try DownloadDirectories("/srv/files")
        guard let below else {
            #expect(throws: JobError.self) { try directories.path(path, owner: 1, mayBeDirectory: true) }
            return
        }
        for text in [path, "/srv/files/" + path] {
            let found = try directories.path(text, owner: 1, mayBeDirectory: true)
            #expect(found.name.isEmpty && found.directory == "/srv/files" + below)
        }
    }

    @Test func path_isForbidden_inFolderOfAnotherCaller() async throws {
        try await Workbench.run {
            $0.downloads.isSystemInstance = true
            // Even a root that is set too high does not open the callers' directories.
            $0.downloads.roots.append(($0.downloads.directory as NSString).deletingLastPathComponent)
        } _: { bench in
            try bench.library.rules.check(path: bench.downloads + "/7/x", owner: 7)
            for path in ["/8/x", "/x", "/07/x"] {
                let error = #expect(throws: JobError.self) {
                    try bench.library.rules.check(path: bench.downloads + path, owner: 7)
                }
                #expect(error?.kind == .policy)
            }
        }
    }

    @Test func download_goesAnywhere_whereTheRootIsTheWholeFileSystem() async throws {
        try await TestOrigin.run { origin in
            origin["/x"] = OriginResource(text: "x")
            try await Workbench.run {
                $0.downloads.roots = ["/"]
            } _: { bench in
                let path = (bench.downloads as NSString).deletingLastPathComponent + "/elsewhere/new/x"
                let result = try await bench.result(
                    ["type": "download", "url": .string(origin.url("/x")), "path": .string(path)])
                #expect(result["path"]?.string == path)
                #expect(FileManager.default.fileExists(atPath: path))
                for path in ["/", "/../x", "/tmp/../x"] {
                    #expect(throws: JobError.self) { try bench.library.rules.check(path: path, owner: getuid()) }
                }
            }
        }
    }

    @Test func download_tellsWhatIsMissing_whereARootIsNotThere() async throws {
        try await Workbench.run(serving: ["/x": OriginResource(text: "x")]) {
            $0.downloads.roots.append($0.downloads.directory + "-gone")
        } _: { origin, bench in
            let root = bench.downloads + "-gone"
            let error = try await bench.failure(
                ["type": "download", "url": .string(origin.url("/x")), "path": .string(root + "/x")])
            #expect(error.kind == .storage && error.message.contains("\"\(root)\""))
            #expect(error.message.hasSuffix("make what is missing, or give another path."))
        }
    }

    @Test(.enabled(if: getuid() == 0, "giving files to other users needs root"))
    func callersFolder_isReadableByCallerAlone_inSystemInstance() async throws {
        try await Workbench.run(serving: ["/x": OriginResource(text: "x")]) {
            $0.downloads.isSystemInstance = true
        } _: { origin, bench in
            // One directory is there already, too open, and the caller's.
            try FileManager.default.createDirectory(
                atPath: bench.downloads + "/1234", withIntermediateDirectories: true)
            chown(bench.downloads + "/1234", 1234, 1234)
            for owner in [UInt32(1234), 1235] {
                let result = try await bench.result(
                    ["type": "download", "url": .string(origin.url("/x")), "path": "deep/x"], owner: owner)
                let directory = bench.downloads + "/\(owner)"
                #expect(result["path"]?.string == directory + "/deep/x")
                for path in ["", "/deep", "/deep/x"] {
                    let attributes = try FileManager.default.attributesOfItem(atPath: directory + path)
                    #expect(attributes[.ownerAccountID] as? Int == Int(geteuid()))
                    let rights: AccessList.Rights =
                        path == "/deep/x" ? [.read, .write] : [.read, .write, .execute]
                    #expect(try bench.accessList(of: directory + path) == AccessList(rights, for: [owner]))
                }
            }
        }
    }

    @Test(arguments: ["link/x", "deep/link/x", "deep/within/new/x"])
    func download_isRefused_whenThereIsALinkInItsPath(path: String) async throws {
        try await Workbench.run(serving: ["/x": OriginResource(text: "x")]) { origin, bench in
            let (outside, within) = (bench.directory + "/outside", bench.downloads + "/c")
            for directory in [outside, within, bench.downloads + "/deep"] {
                try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            }
            try FileManager.default.createSymbolicLink(
                atPath: bench.downloads + "/link", withDestinationPath: outside)
            try FileManager.default.createSymbolicLink(
                atPath: bench.downloads + "/deep/link", withDestinationPath: "../../outside")
            try FileManager.default.createSymbolicLink(
                atPath: bench.downloads + "/deep/within", withDestinationPath: "../c")
            let error = try await bench.failure(.download(origin.url("/x"), to: path))
            #expect(error.kind == .policy)
            #expect(bench.names(below: outside) == [] && bench.names(below: within) == [])
        }
    }

    /// Who owns the directory above can put a link in the place of a directory that was just made.
    @Test func download_isRefused_whenLinkIsSwappedIn() async throws {
        let target = Mutex("")
        var files = FileOperations.real
        files.makeDirectory = { directory, name, mode throws(Errno) in
            try FileOperations.real.makeDirectory(directory, name, mode)
            guard name == "new" else { return }
            try FileOperations.real.removeDirectory(directory, name)
            _ = target.withLock { symlinkat($0, directory, name) }
        }
        try await Workbench.run(serving: ["/x": OriginResource(text: "x")], files: files) { origin, bench in
            let outside = bench.directory + "/outside"
            try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: true)
            for inside in [bench.root, bench.downloads] {
                for link in [outside, ".", "../outside"] {
                    target.withLock { $0 = link }
                    let error = try await bench.failure(.download(origin.url("/x"), to: inside + "/new/sub/x"))
                    #expect(error.kind == .policy)
                    unlink(inside + "/new")
                }
            }
            #expect(bench.names(below: outside) == [])
            #expect(origin.log.count() == 0)
        }
    }

    @Test(arguments: [1000, 1001] as [UInt32]) func error_namesOtherJob_ofSameUserOnly(owner: UInt32) async throws {
        try await Workbench.run(against: { _, _ in [.hold] }) { origin, bench in
            let source: JSON = .download(origin.url("/x"), to: bench.root + "/x")
            let first = try bench.start(source, job: 123_456)
            await origin.log.reaches(1)
            let error = try await bench.failure(source, job: 2, owner: owner)
            #expect(error.kind == .exists)
            #expect(error.message.contains("job 123456") == (owner == 1000))
            first.cancel()
        }
    }

    @Test func skip_isRefused_whenWhatIsThereIsNoFile() async throws {
        try await Workbench.run { bench in
            mkfifo(bench.root + "/fifo", 0o600)
            try bench.write([1], to: bench.directory + "/outside")
            symlink(bench.directory + "/outside", bench.root + "/link")
            for name in ["fifo", "link"] {
                let error = try await bench.failure(
                    .download("http://127.0.0.1:1/", to: bench.root + "/" + name, ["exists": "skip"]))
                #expect(error.kind == .exists)
            }
        }
    }

    /// What was there under the name stays as it was, wherever a link in its place leads.
    @Test func download_replacesLinkItself() async throws {
        try await Workbench.run(serving: ["/x": OriginResource(text: "new")]) { origin, bench in
            try bench.write(Array("old".utf8), to: bench.directory + "/outside")
            try FileManager.default.createDirectory(atPath: bench.downloads, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                atPath: bench.downloads + "/x", withDestinationPath: bench.directory + "/outside")
            _ = try await bench.result(.download(origin.url("/x"), to: "x", ["exists": "replace"]))
            #expect(bench.bytes(of: bench.directory + "/outside") == Array("old".utf8))
            #expect(bench.bytes(of: bench.downloads + "/x") == Array("new".utf8))
        }
    }
}
