import Foundation
import Testing

/// The resources of a process, as the kernel reports them.
enum Memory {
    /// Bytes in memory.
    static func resident(of pid: pid_t) throws -> Int { try bytes("VmRSS", of: pid) }

    /// The most that it ever had in memory.
    static func peak(of pid: pid_t) throws -> Int { try bytes("VmHWM", of: pid) }

    private static func bytes(_ name: String, of pid: pid_t) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(name + ":") })
        let kilobytes = try #require(line.split(separator: " ").dropFirst().first.flatMap { Int($0) })
        return kilobytes << 10
    }

    /// Open descriptors.
    static func descriptors(of pid: pid_t) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").count
    }

    /// Open sockets. Unlike other descriptors there are never more of them than are used: the database opens another
    /// file whenever more read at once than ever before.
    static func sockets(of pid: pid_t) throws -> Int {
        let directory = "/proc/\(pid)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: directory).count { name in
            // A descriptor that is closed meanwhile has no destination.
            let destination = try? FileManager.default.destinationOfSymbolicLink(atPath: directory + "/" + name)
            return destination?.hasPrefix("socket:") == true
        }
    }
}
