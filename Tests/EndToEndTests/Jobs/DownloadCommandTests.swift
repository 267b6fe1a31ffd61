import Foundation
import JobModel
import TestOrigin
import TestSupport
import Testing

/// The verb download, with a daemon of the user's own.
@Suite struct DownloadCommandTests {
    private typealias Run = (end: ChildProcess.End, output: String, errors: String)

    /// Runs `body` with a function that runs deferctl in a directory of its own.
    private func run(
        _ body:
            @escaping @Sendable (
                TestOrigin, Daemon, TemporaryDirectory, (_ words: [String]) async throws -> Run
            ) async throws -> Void
    ) async throws {
        try await TestOrigin.run { origin in
            for name in ["a", "b", "c"] { origin["/\(name)"] = OriginResource(text: "content of \(name)") }
            try await Daemon.run(flags: ["--instance", "user"]) { daemon in
                try await TemporaryDirectory.with { directory in
                    try await body(origin, daemon, directory) { words in
                        try await ChildProcess.run(
                            [BuiltProgram.deferctl, "--socket", daemon.socket] + words,
                            environment: ["HOME": directory.path], directory: directory.path)
                    }
                }
            }
        }
    }

    @Test func lineThatIsNotUTF8_isRefused() async throws {
        try await run { origin, _, directory, deferctl in
            try Data(Array("# caf".utf8) + [0xE9, 0x0A] + Array("\(origin.url("/a")) caf".utf8) + [0xE9, 0x0A])
                .write(to: URL(filePath: directory.path + "/list"))
            let run = try await deferctl(["download", "-i", "list"])
            #expect(run.end == .code(65) && run.errors.contains(#"caf\xe9" is not UTF-8"#), "\(run.errors)")
            #expect(origin.log.count("/a") == 0)
        }
    }

    @Test func fetch_writesToStandardOutput_asItsFile() async throws {
        try await run { origin, _, directory, deferctl in
            #expect(try await deferctl(["fetch", "-o", "-", origin.url("/a")]).output == "content of a")
            #expect(Files.names(in: directory.path).isEmpty)
            let refused = try await deferctl(["fetch", "-o", directory.path, "-d", "x", origin.url("/b")])
            #expect(refused.end == .code(74) && origin.log.count("/b") == 0)
        }
    }

    @Test func severalURLs_areDownloadedIntoADirectory() async throws {
        try await run { origin, _, directory, deferctl in
            let run = try await deferctl(["download", "-q", origin.url("/a"), origin.url("/b"), "--to", "both"])
            #expect(run.end == .code(0), "\(run.errors)")
            #expect(run.output == "\(directory.path)/both/a\n\(directory.path)/both/b\n")
            #expect(try String(contentsOfFile: directory.path + "/both/b", encoding: .utf8) == "content of b")
        }
    }

    @Test func list_isDownloaded_andTheSecondRunFetchesOnlyWhatIsMissing() async throws {
        try await run { origin, _, directory, deferctl in
            let list = """
                # A comment, and a blank line.

                \(origin.url("/a")) first
                \(origin.url("/missing")) \(origin.url("/b"))
                \(origin.url("/c")) sha256:\(String(repeating: "0", count: 64))
                nothing
                """
            try directory.write(list, to: "list")
            let words = ["download", "-i", "list", "--to", "files", "--exists", "skip", "--retries", "0"]
            let first = try await deferctl(words)
            #expect(first.end == .code(65))
            #expect(first.output == "\(directory.path)/files/first\n\(directory.path)/files/missing\n")
            #expect(first.errors.contains("line 6: \"nothing\" does not begin with a URL"), "\(first.errors)")
            #expect(first.errors.contains("failed (checksum)"), "\(first.errors)")
            #expect(first.errors.contains("3 of 3 files, "), "\(first.errors)")
            #expect(try String(contentsOfFile: directory.path + "/files/missing", encoding: .utf8) == "content of b")
            let fetched = origin.log.count("/a")
            let second = try await deferctl(words)
            #expect(second.end == .code(65))
            #expect(origin.log.count("/a") == fetched)
        }
    }

    @Test func paths_areThoseOfTheUser() async throws {
        try await run { origin, daemon, directory, deferctl in
            for (to, place) in [
                ("./here", "\(directory.path)/here"), ("new/directory/x", "\(directory.path)/new/directory/x"),
                ("new/../up", "\(directory.path)/up"), ("~/home", "\(directory.path)/home"),
                ("new/", "\(directory.path)/new/a"),
            ] {
                let run = try await deferctl(["download", "-q", origin.url("/a"), "--to", to])
                #expect(run.output == place + "\n", "\(to): \(run.errors)")
            }
            let plain = try await deferctl(["download", "-q", origin.url("/a")])
            #expect(plain.output == "\(directory.path)/a\n", "\(plain.errors)")
            var resource = OriginResource(text: "named")
            resource.headers = [("Content-Disposition", "attachment; filename=b.txt")]
            origin["/get"] = resource
            let named = try await deferctl(["download", "-q", origin.url("/get?id=7")])
            #expect(named.output == "\(directory.path)/b.txt\n", "\(named.errors)")
            origin["/store"] = OriginResource(text: "kept")
            symlink("new", directory.path + "/link")
            let linked = try await deferctl(["download", "-q", origin.url("/get?id=7"), "--to", "link"])
            #expect(linked.output == "\(directory.path)/new/b.txt\n", "\(linked.errors)")
            let name = URL(filePath: directory.path).lastPathComponent
            for (to, place) in [("link/fresh/x", "new/fresh/x"), ("../\(name)/fresh/f/x", "fresh/f/x")] {
                let fresh = try await deferctl(["download", "-q", origin.url("/a"), "--to", to])
                #expect(fresh.output == "\(directory.path)/\(place)\n", "\(fresh.errors)")
            }
            symlink("here", directory.path + "/there")
            for path in ["./here", "there"] {
                let sent = try await deferctl(["upload", "-q", path, origin.url("/store")])
                #expect(sent.end == .code(0), "\(sent.errors)")
                #expect(origin.log.last("/store")?.body == Array("content of a".utf8))
            }
        }
    }

    @Test func secondArgument_isNeverAPath() async throws {
        try await run { origin, _, _, deferctl in
            let run = try await deferctl(["download", origin.url("/a"), "target"])
            #expect(run.end == .code(64) && run.errors.contains("use --to target"), "\(run.errors)")
        }
    }
}
