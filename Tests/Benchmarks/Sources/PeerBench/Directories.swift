import Foundation
import Glibc

/// Directories that are made for one run of the bench and removed after it.
final class Directories {
    private let disk: String
    private let memory: String
    private var count = 0

    init(_ settings: BenchSettings) throws {
        let working = FileManager.default.currentDirectoryPath
        let root = settings.disk.hasPrefix("/") ? settings.disk : "\(working)/\(settings.disk)"
        disk = "\(root)/\(getpid())"
        memory = "\(settings.memory)/peerbench.\(getpid())"
        for directory in [disk, memory] {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        }
    }

    /// A new directory on the disk. It stays until the end, since deleting would slow the next one's making of files.
    func onDisk() throws -> String { try make(in: disk) }

    /// A new directory in memory.
    func inMemory() throws -> String { try make(in: memory) }

    func delete(_ directory: String) {
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Has a virtual machine's host give it so much memory now, so that no contestant waits for that.
    func warmMemory(bytes: Int) throws {
        let path = "\(memory)/warm"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw BenchError.system("make \(path)") }
        defer {
            close(descriptor)
            unlink(path)
        }
        let block = [UInt8](repeating: 0x55, count: 1 << 20)
        for _ in 0..<(bytes >> 20) {
            guard write(descriptor, block, block.count) == block.count else { throw BenchError.system("fill \(path)") }
        }
    }

    func remove() {
        delete(disk)
        delete(memory)
    }

    private func make(in directory: String) throws -> String {
        count += 1
        let path = "\(directory)/\(count)"
        guard mkdir(path, 0o755) == 0 else { throw BenchError.system("make the directory \(path)") }
        return path
    }
}
