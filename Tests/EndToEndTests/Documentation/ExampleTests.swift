import Foundation
import TestOrigin
import Testing

/// The example clients in `config/examples`, which are installed as documentation.
@Suite struct ExampleTests {
    @Test(arguments: ["client.py", "client.sh", "ExampleClient"])
    func example_downloadsAndSaysSo(name: String) async throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let programs = URL(filePath: BuiltProgram.deferctl).deletingLastPathComponent().path
        let program = name == "ExampleClient" ? "\(programs)/\(name)" : root.path + "/config/examples/" + name
        try await TestOrigin.run { origin in
            origin["/file"] = OriginResource(Array(repeating: 7, count: 10_000), etag: "\"1\"")
            try await Daemon.run { daemon in
                let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
                let run = try await ChildProcess.run(
                    [program, origin.url("/file"), "example"],
                    environment: ["DEFERD_SOCKET": daemon.socket, "PATH": "\(programs):\(path)"])
                #expect(run.end == .code(0), "\(run.errors)")
                let expected = name == "client.sh" ? "10000" : daemon.downloads + "/example"
                #expect(run.output.contains(expected), "\(run.output) \(run.errors)")
                #expect(try Files.bytes(daemon.downloads + "/example").count == 10_000)
                let failed = try await ChildProcess.run(
                    [program, origin.url("/missing"), "example"],
                    environment: ["DEFERD_SOCKET": daemon.socket, "PATH": "\(programs):\(path)"])
                #expect((failed.output + failed.errors).contains("404"), "\(failed.output) \(failed.errors)")
            }
        }
    }
}
