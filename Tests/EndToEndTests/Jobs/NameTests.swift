import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// Names that the system's own resolver looks up, with a name server that does not answer.
@Suite(.enabled(if: User.canBeOthers && Files.exists("/usr/bin/unshare"), "mounting and other users need root"))
struct NameTests {
    /// As many as one user may have looked up at a time.
    private static let perUser = 4

    @Test func deadNames_ofOneUser_holdUpNobody() async throws {
        let server = try SilentNameServer()
        defer { server.close() }
        try await GuidedOrigin.run({ _, _ in .text("found") }) { origin in
            try await Household.with { household in
                let directory = household.directory
                chmod(directory.path, 0o711)
                try directory.write(
                    "nameserver \(SilentNameServer.address)\noptions timeout:30 attempts:5\n", to: "resolv.conf")
                try directory.write("127.0.0.1 localhost bob.example\n", to: "hosts")
                try directory.write("passwd: files\ngroup: files\nhosts: files dns\n", to: "nsswitch.conf")
                let script = """
                    for name in resolv.conf hosts nsswitch.conf; do mount --bind "$0/$name" "/etc/$name" || exit 1; done
                    exec "$@"
                    """
                let daemon = try await household.start(
                    configuration: """
                        socket: {mode: "0666"}
                        queues: {default: 60}
                        http: {connectTimeout: 300}

                        """, wrapper: ["/usr/bin/unshare", "-m", "/bin/sh", "-c", script, directory.path])
                let (ann, bob) = (try User.ann.connect(to: daemon), try User.bob.connect(to: daemon))
                func dead(_ number: Int, _ members: [String: JSON] = [:]) -> JSON {
                    .fetch(.string("http://dead\(number).example/"), ["retry": ["max": 0]]).with(members)
                }
                var jobs: [Int] = []
                for number in 0..<20 { jobs.append(try await ann.submit(dead(number))) }
                let asked = try await server.names(Self.perUser)
                let alive = JSON.fetch(origin.url("/x", host: "bob.example"))
                #expect(try await bob.succeed(alive)["body"] == "found")
                // For a name that is being looked up, and for a name that waits for its turn.
                let waiting = (0..<20).first { !asked.contains("dead\($0).example") } ?? 0
                let running = (0..<20).first { asked.contains("dead\($0).example") } ?? 0
                for number in [running, waiting] {
                    let error = try await ann.fail(dead(number, ["timeout": 0.2]))
                    #expect(error["kind"] == "timeout", "\(error)")
                    _ = try await ann.call("job.cancel", .job(jobs[number]))
                    #expect(try await ann.wait(jobs[number])["state"] == "cancelled")
                }
                for job in jobs { _ = try? await ann.call("job.cancel", .job(job)) }
                for job in jobs { #expect(try await ann.wait(job)["state"] == "cancelled") }
                #expect(try await bob.succeed(alive)["body"] == "found")
                try await daemon.stop()
            }
        }
    }
}

/// A name server that never answers, and records the requested names.
private final class SilentNameServer: Sendable {
    static let address = "127.77.0.53"
    private let descriptor: FileDescriptor
    private let fresh = Mailbox<String>()

    init() throws {
        let number = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        descriptor = FileDescriptor(number: number)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = inet_addr(Self.address)
        name.sin_port = UInt16(53).bigEndian
        let isBound = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        try #require(isBound, "no port 53 on \(Self.address): \(String(cString: strerror(errno)))")
        Thread.detachNewThread { [self] in
            var known: Set<String> = []
            while let question = descriptor.read(), !question.isEmpty {
                // Behind twelve bytes: labels, each behind its length.
                var (labels, rest) = ([String](), question.dropFirst(12))
                while let length = rest.first, length > 0 {
                    labels.append(String(decoding: rest.dropFirst().prefix(Int(length)), as: UTF8.self))
                    rest = rest.dropFirst(1 + Int(length))
                }
                let name = labels.joined(separator: ".")
                if known.insert(name).inserted { fresh.put(name) }
            }
            descriptor.close()
        }
    }

    /// Waits for this many requests.
    func names(_ count: Int) async throws -> Set<String> {
        var names: Set<String> = []
        for _ in 0..<count { names.insert(try #require(try await fresh.next("question for a name"))) }
        return names
    }

    func close() { descriptor.shutDown() }
}
