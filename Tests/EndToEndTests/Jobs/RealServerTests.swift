import Foundation
import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// Downloads from nginx and through tinyproxy, with curl as the judge.
@Suite struct RealServerTests {
    private static let (nginx, tinyproxy, curl) = ("/usr/sbin/nginx", "/usr/bin/tinyproxy", "/usr/bin/curl")

    /// A port that was free a moment ago, of an address of loopback that no other test uses.
    private func freePort(of address: String) throws -> Int { try WatchedPort(address).port }

    /// Runs `body` while a server runs, which has said `line`.
    private func serve(_ command: [String], _ line: String, _ body: () async throws -> Void) async throws {
        let server = try ChildProcess(command)
        _ = try await server.line(containing: line)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        server.send(signal: SIGTERM)
        _ = try await server.end()
        try outcome.get()
    }

    @Test(.enabled(if: Files.exists(nginx) && Files.exists(curl), "needs nginx and curl"))
    func download_equalsCurls_fromNginx() async throws {
        let directory = try TemporaryDirectory()
        let port = try freePort(of: "127.0.0.78")
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "\($0)_temp_path \(directory.path)/\($0);"
        }
        let configuration = try directory.write(
            """
            daemon off; master_process off; pid \(directory.path)/pid; error_log stderr notice;
            events {}
            http {
                access_log off; \(temporary.joined(separator: " "))
                server { listen 127.0.0.78:\(port); root \(directory.path)/www; }
            }
            """, to: "nginx.conf")
        mkdir(directory.path + "/www", 0o755)
        let file = directory.path + "/www/a file.bin"
        try Data(Sample.large).write(to: URL(filePath: file))
        let past = Date(timeIntervalSince1970: 784_111_777)
        try FileManager.default.setAttributes([.modificationDate: past], ofItemAtPath: file)
        let url = "http://127.0.0.78:\(port)/a%20file.bin"
        try await serve([Self.nginx, "-c", configuration], "event method") {
            let judge = directory.path + "/judge"
            #expect(try await ChildProcess.run([Self.curl, "-sSfRo", judge, url]).0 == .code(0))
            try await Daemon.run { daemon, wire in
                let more: [String: JSON] = ["segments": 4, "remoteTime": true]
                let job = try await wire.run(.download(.string(url), to: "new/", more))
                let path = try #require(job["result"]?["path"]?.string, "\(job)")
                #expect(path == daemon.downloads + "/new/a file.bin")
                #expect(try Files.bytes(path) == Files.bytes(judge))
                for file in [path, judge] {
                    let attributes = try FileManager.default.attributesOfItem(atPath: file)
                    #expect(attributes[.modificationDate] as? Date == past, "\(file)")
                }
            }
        }
    }

    @Test(.enabled(if: Files.exists(tinyproxy), "needs tinyproxy"), arguments: [true, false])
    func request_goesThroughTinyproxy_withItsPassword(hasPassword: Bool) async throws {
        let directory = try TemporaryDirectory()
        let port = try freePort(of: "127.0.0.77")
        try await ScriptedOrigin.run({ _, _ in [.head("200 OK", [("Content-Length", "2")]), .send("ok")] }) { origin in
            // It passes requests for this domain on to the origin as to another proxy.
            let configuration = try directory.write(
                """
                Listen 127.0.0.77
                Port \(port)
                LogLevel Info
                BasicAuth me secret
                Upstream http 127.0.0.1:\(origin.port) ".example"
                """, to: "tinyproxy.conf")
            try await serve([Self.tinyproxy, "-d", "-c", configuration], "listening on fd") {
                let proxy = "http://\(hasPassword ? "me:secret@" : "")127.0.0.77:\(port)"
                try await Daemon.run(configuration: "http: {proxy: \"\(proxy)\"}") { daemon, wire in
                    let job = try await wire.run(.fetch("http://origin.example/x"))
                    guard hasPassword else {
                        #expect(job["error"]?["kind"] == "connect" && job["error"]?["attempts"] == 1, "\(job)")
                        return
                    }
                    #expect(job["result"]?["body"] == "ok", "\(job)")
                    #expect(origin.log.entries.map(\.target) == ["http://origin.example:80/x"])
                }
            }
        }
    }
}
