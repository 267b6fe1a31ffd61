@testable import DataSources
import DeferredKit
import Foundation
import JobModel
import TestOrigin
import Testing

/// Downloads into a directory, whose files the server names.
@Suite struct ServerNameTests {
    @Test(arguments: [
        (#"attachment; filename=a.txt"#, "a.txt"), (#"attachment; filename="a b.txt""#, "a b.txt"),
        (#"attachment; FileName="a;b.txt" ; x=y"#, "a;b.txt"), (#"attachment; filename="a\"b.txt""#, "a\"b.txt"),
        (#"attachment; filename="no.txt"; filename*=UTF-8''na%C3%AFve.txt"#, "naïve.txt"),
        (#"attachment; filename*=iso-8859-1'en'%A3%20rates; filename=x"#, "£ rates"),
        (#"attachment; filename*=UTF-8''%FF; filename=x"#, "x"), (#"attachment; filename*=UTF-8''%4; filename=x"#, "x"),
        (#"attachment; filename*=UTF-8''%+F; filename=x"#, "x"),
        (#"attachment; filename*=koi8-r''a; filename=x"#, "x"), ("inline", nil), ("", nil),
        (#"attachment; filename="""#, nil), (#"attachment; filename="../../etc/passwd""#, "passwd"),
        (#"attachment; filename*=UTF-8''..%2F.bashrc"#, "bashrc"),
    ])
    func disposition_namesFile(value: String, name: String?) {
        #expect(ServerName.name(inDisposition: value) == name)
    }

    @Test(arguments: [
        ("a.txt", "a.txt"), ("C:\\dir\\a.txt", "a.txt"), ("..", nil), (" . .x", "x"), ("a.part", "a"),
        ("a.part.part", "a"), (".part", "part"), ("a/.part.part", "part"), ("x.part ", "x"),
        ("x.part .part ", "x"), ("x .part", "x"), ("a\u{0}\u{1B}b", "ab"),
        ("exe\u{202E}txt.png", "exetxt.png"),
        ("Größe 👩‍👧.txt", "Größe 👩‍👧.txt"), ("/", nil), ("a/\u{301}b", "\u{301}b"),
        (String(repeating: "ä", count: 200) + ".tar", String(repeating: "ä", count: 123) + ".tar"),
    ])
    func name_isCleaned(text: String, name: String?) {
        #expect(ServerName.cleaned(text) == name)
    }

    private static let content = Workbench.bytes(200_000)

    private func download(_ origin: ScriptedOrigin, _ path: String, _ more: [String: JSON] = [:]) -> JSON {
        .download(origin.url(path), to: "new/", more)
    }

    @Test(arguments: [
        ("/x", "attachment; filename=tool.tar.gz", "tool.tar.gz"), ("/dir/a%20b.txt?q=/z", nil, "a b.txt"),
        ("/dir/", nil, "download"), ("/%2E%2E", "x", "download"),
    ])
    func file_isNamed_byServer(path: String, disposition: String?, name: String) async throws {
        let script: ScriptedOrigin.Script = { _, _ in
            [
                .head(
                    "200 OK", [("Content-Length", "2")] + (disposition.map { [("Content-Disposition", $0)] } ?? [])),
                .send("ok"),
            ]
        }
        try await Workbench.run(against: script) { origin, bench in
            let result = try await bench.result(download(origin, path))
            #expect(result["path"]?.string == bench.downloads + "/new/" + name)
            #expect(origin.log.count() == 1)
            let error = try await bench.failure(download(origin, path), job: 2)
            #expect(error.kind == .exists)
            let skipped = try await bench.result(download(origin, path, ["exists": "skip"]), job: 3)
            #expect(skipped["status"] == .null)
            let renamed = try await bench.result(download(origin, path, ["exists": "rename"]), job: 4)
            #expect(renamed["path"]?.string != result["path"]?.string)
            #expect(bench.names(below: bench.downloads).count == 3)
        }
    }

    @Test func retry_resumesFile_whateverServerCallsItThen() async throws {
        let script: ScriptedOrigin.Script = { request, count in
            guard count == 0 else { return Misbehaviour.correct(Self.content, etag: "\"a\"", to: request) }
            return [
                .head(
                    "200 OK",
                    [("Content-Length", "200000"), ("ETag", "\"a\""), ("Content-Disposition", "x; filename=first")]),
                .send(Array(Self.content.prefix(90_000))), .close,
            ]
        }
        try await Workbench.run(against: script) { origin, bench in
            _ = try await bench.failure(download(origin, "/second"))
            let result = try await bench.result(download(origin, "/second"), attempt: 2)
            #expect(result["resumedFrom"] == 90_000)
            #expect(bench.names(below: bench.downloads) == ["new", "new/first"])
            #expect(bench.bytes(of: bench.downloads + "/new/first") == Self.content)
        }
    }

    @Test func name_isStored_beforeFirstByte() async throws {
        let script: ScriptedOrigin.Script = { _, _ in
            [.head("200 OK", [("Content-Length", "10"), ("ETag", "\"a\"")]), .hold]
        }
        try await Workbench.run(against: script) { origin, bench in
            let running = try bench.start(download(origin, "/name"))
            for await _ in running.progress { break }
            #expect(bench[checkpoint: 1]?["name"] == "name")
            running.cancel()
        }
    }

    @Test func mirror_namesFile_whenURLFails() async throws {
        let script: ScriptedOrigin.Script = { request, _ in
            request.path == "/gone"
                ? [.head("404 Not Found", [("Content-Length", "0")])]
                : [.head("200 OK", [("Content-Length", "2")]), .send("ok")]
        }
        try await Workbench.run(against: script) { origin, bench in
            let result = try await bench.result(
                download(origin, "/gone", ["mirrors": [.string(origin.url("/mirror"))]]))
            #expect(result["path"]?.string == bench.downloads + "/new/mirror")
            let error = try await bench.failure(download(origin, "/gone"))
            #expect(error.kind == .http && error.http?["status"]?.int == 404)
        }
    }

    @Test func file_isDownloaded_whenNameIsAsLongAsPossible() async throws {
        try await Workbench.run(serving: ["/x": OriginResource(Self.content)]) { origin, bench in
            let names = ["m", "n"].map { String(repeating: "n", count: 254) + $0 }
            for name in names { _ = try await bench.result(.download(origin.url("/x"), to: name)) }
            #expect(bench.names(below: bench.downloads) == names)
            // Their unfinished files have different names.
            #expect(DownloadPath.partName(of: names[0]) != DownloadPath.partName(of: names[1]))
        }
    }
}
