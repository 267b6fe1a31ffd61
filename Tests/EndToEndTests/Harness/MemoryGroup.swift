import Foundation
import Glibc
import Testing

/// A control group of the kernel's whose processes have so much memory together, as `MemoryMax=` makes one.
struct MemoryGroup {
    /// The first version knows it, too, which the daemon does not ask.
    private static let root = "/sys/fs/cgroup/memory"
    private let path: String
    /// Enters it, and has it told as the second version does.
    let script: String

    /// Nil where there can be none.
    init?(most: Int) throws {
        path = Self.root + "/deferd-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        guard Files.exists(Self.root + "/memory.limit_in_bytes"), mkdir(path, 0o755) == 0 else { return nil }
        script = "echo \(most) >\(path)/memory.limit_in_bytes && echo $$ >\(path)/cgroup.procs && " + Self.saying(most)
    }

    /// Only says so, to whoever asks in the mount namespace.
    static func saying(_ most: Int) -> String {
        "mount -t tmpfs tmpfs /sys/fs/cgroup && echo \(most) >/sys/fs/cgroup/memory.max"
    }

    /// How many processes the kernel has killed in it.
    func kills() throws -> Int {
        let text = try String(contentsOfFile: path + "/memory.oom_control", encoding: .utf8)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("oom_kill ") })
        return try #require(Int(line.dropFirst("oom_kill ".count)))
    }

    func remove() { rmdir(path) }
}
