import Foundation
import NIOCore

/// The main job in front of the reader's eyes: a real daemon, a real origin, the real client.
@main
struct Demo {
    private let programs: URL
    private let directory: URL
    private var socket: String { directory.appending(path: "deferd.sock").path }

    static func main() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "deferd-demo-\(getpid())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let programs = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        let demo = Demo(programs: programs, directory: directory)
        let file = Self.noise(96 << 20)
        let origin = try await DemoOrigin { path, port in
            switch path {
            case "/tool.tar.gz": return file
            case "/releases/latest":
                let url = "http://127.0.0.1:\(port)/tool.tar.gz"
                return ByteBuffer(string: #"{"tag": "1.2", "assets": [{"name": "tool.tar.gz", "url": "\#(url)"}]}"#)
            default: return nil
            }
        }
        try demo.run(origin)
        try await origin.close()
        print("\nDone: the daemon is stopped, and nothing is left in \(directory.deletingLastPathComponent().path).")
    }

    private func run(_ origin: DemoOrigin) throws {
        var daemon = try start()
        say(
            "A download, with progress",
            of: ["download", origin.url("/tool.tar.gz"), "--to", "tool.tar.gz", "--rate", "32000000"])
        say("A value out of a JSON document", of: ["json", origin.url("/releases/latest"), "/assets/0/url"])
        say("A fetch that fails: the error says what to do, the exit code is 1", of: ["fetch", origin.url("/nothing")])
        let spec = """
            {"source": {"type": "json", "url": "\(origin.url("/releases/latest"))"}, "label": "newest release", "then": [
              {"then": {"source": {"type": "download", "url": "{{input/assets/0/url}}", "path": "newest.tar.gz", "rate": 32000000}}},
              {"then": {"return": {"saved": "{{input/path}}", "sha256": "{{input/sha256}}", "resumed from": "{{input/resumedFrom}}"}}},
              {"fail": {"return": "this would have caught any failure above"}}]}
            """
        print(
            "\n\u{1B}[1m▸ A whole chain, written down, and a daemon that is killed in the middle of it\u{1B}[0m\n\(spec)"
        )
        try Data(spec.utf8).write(to: directory.appending(path: "chain.json"))
        let id = capture(["submit", directory.appending(path: "chain.json").path])
        print("job \(id)")
        Thread.sleep(forTimeInterval: 1.5)
        print("$ kill -9 \(daemon.processIdentifier)   # and start it again")
        kill(daemon.processIdentifier, SIGKILL)
        daemon.waitUntilExit()
        daemon = try start()
        say("The job goes on where it was", of: ["watch", id])
        say("The tree of the job", of: ["show", id])
        say("All jobs", of: ["list"])
        daemon.terminate()
        daemon.waitUntilExit()
        guard daemon.terminationStatus == 0 else {
            print("The daemon ended with \(daemon.terminationStatus).")
            exit(1)
        }
    }

    /// Starts the daemon and waits until it says that it serves.
    private func start() throws -> Process {
        let daemon = Process()
        daemon.executableURL = programs.appending(path: "deferd")
        daemon.arguments = [
            "--socket", socket, "--state-directory", directory.appending(path: "state").path,
            "--downloads-directory", directory.appending(path: "downloads").path,
        ]
        let log = Pipe()
        daemon.standardError = log
        try daemon.run()
        var text = Data()
        while !String(decoding: text, as: UTF8.self).contains("serves") {
            let more = log.fileHandleForReading.availableData
            guard !more.isEmpty else {
                fatalError("The daemon did not start: \(String(decoding: text, as: UTF8.self))")
            }
            text += more
        }
        return daemon
    }

    private func say(_ title: String, of arguments: [String]) {
        print("\n\u{1B}[1m▸ \(title)\u{1B}[0m\n$ deferctl \(arguments.joined(separator: " "))")
        fflush(nil)
        let client = client(arguments)
        try? client.run()
        client.waitUntilExit()
        if client.terminationStatus != 0 { print("(exit code \(client.terminationStatus))") }
    }

    private func capture(_ arguments: [String]) -> String {
        let client = client(arguments)
        let output = Pipe()
        client.standardOutput = output
        try? client.run()
        client.waitUntilExit()
        return String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func client(_ arguments: [String]) -> Process {
        let client = Process()
        client.executableURL = programs.appending(path: "deferctl")
        client.arguments = arguments
        client.environment = ProcessInfo.processInfo.environment.merging(["DEFERD_SOCKET": socket]) { $1 }
        return client
    }

    private static func noise(_ count: Int) -> ByteBuffer {
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        var words = [UInt64](repeating: 0, count: count / 8)
        for index in words.indices {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            words[index] = state
        }
        return words.withUnsafeBytes { ByteBuffer(bytes: $0) }
    }
}
