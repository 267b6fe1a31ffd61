import Foundation
import JobModel
import TestOrigin
import TestSupport
import Testing

/// What the daemon logs of the contents of URLs.
@Suite struct LogMaskingTests {
    private static let secret = "hunter2token"

    /// However a request ends, its query never appears in the log.
    @Test func queries_areMasked_whateverIsLogged() async throws {
        let redirect: ScriptedOrigin.Script = { request, _ in
            let empty = [("Content-Length", "0")]
            return switch request.path {
            case "/moved": [.head("302 Found", [("Location", "/gone?token=\(Self.secret)")] + empty)]
            case "/broken": [.head("302 Found", [("Location", "http://[?token=\(Self.secret)")] + empty)]
            case "/denied": [.head("302 Found", [("Location", "http://169.254.169.254/?token=\(Self.secret)")] + empty)]
            case "/large": [.head("200 OK", [("Content-Length", "99999999999")])]
            case "/json": [.head("200 OK", [("Content-Length", "2")]), .send("no")]
            case "/cut": [.head("200 OK", [("Content-Length", "10"), ("ETag", "\"a\"")]), .send("12345"), .close]
            case "/store": [.head("500 No", empty)]
            default: [.head("404 Not Found", empty)]
            }
        }
        try await ScriptedOrigin.run(redirect) { origin in
            try await Daemon.run(configuration: "log: {level: trace}\nhttp: {retry: {max: 0}}\n") { daemon, wire in
                func url(_ path: String) -> JSON { .string(origin.url(path + "?token=\(Self.secret)")) }
                var specs: [JSON] = ["/gone", "/moved", "/broken", "/denied", "/large"].map {
                    ["source": ["type": "url", "url": url($0)]]
                }
                specs.append(["source": ["type": "json", "url": url("/json")]])
                specs.append([
                    "source": ["type": "download", "url": url("/cut"), "path": "x", "mirrors": [url("/gone")]],
                    "retry": ["max": 1, "initial": 0.01],
                ])
                specs.append(["source": ["type": "url", "url": .string("http://127.0.0.1:1/?token=\(Self.secret)")]])
                // Filled in by an expression.
                specs.append([
                    "source": ["type": "value", "value": .string(Self.secret)],
                    "then": [
                        ["then": ["source": ["type": "url", "url": .string(origin.url("/gone?token={{input}}"))]]]
                    ],
                ])
                try FileManager.default.createDirectory(
                    atPath: daemon.downloads, withIntermediateDirectories: true)
                try Data("text".utf8).write(to: URL(filePath: daemon.downloads + "/x-sent"))
                specs.append(["source": ["type": "upload", "url": url("/store"), "path": "x-sent"]])
                for spec in specs {
                    let error = try await wire.fail(spec)
                    #expect(error["kind"]?.string != nil, "\(error)")
                }
                let log = daemon.process.errorText
                #expect(log.contains("?***"), "\(log.suffix(2000))")
                #expect(!log.contains(Self.secret), "\(log.split(separator: "\n").filter { $0.contains(Self.secret) })")
            }
        }
    }
}
