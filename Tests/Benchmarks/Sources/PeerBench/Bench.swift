import Foundation
import Glibc

/// The surroundings of the rows: their directories, and the place for their measurements.
final class Bench {
    let daemon: String
    private(set) var comparisons: [Comparison] = []
    private(set) var notes: [String] = []
    /// How often each contestant runs; nil leaves it to the row.
    let rounds: Int?
    /// Seconds for which the row `machines` keeps a snapshot.
    let pinned: Double
    private let disk: String
    private let memory: String
    private var directories = 0

    init(daemon: String) throws {
        let environment = ProcessInfo.processInfo.environment
        self.daemon = daemon
        rounds = environment["ROUNDS"].flatMap { Int($0) }
        pinned = environment["PINNED"].flatMap { Double($0) } ?? 60
        disk = "\(FileManager.default.currentDirectoryPath)/.build/peerbench/\(getpid())"
        memory = "/dev/shm/peerbench.\(getpid())"
        for directory in [disk, memory] {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        }
    }

    // MARK: Directories

    /// A new directory on the disk. It stays until the end, since deleting would slow the next one's making of files.
    func onDisk() throws -> String { try makeDirectory(in: disk) }

    /// A new directory in memory.
    func inMemory() throws -> String { try makeDirectory(in: memory) }

    private func makeDirectory(in parent: String) throws -> String {
        directories += 1
        let path = "\(parent)/\(directories)"
        guard mkdir(path, 0o755) == 0 else { throw BenchError.system("make the directory \(path)") }
        return path
    }

    func delete(_ directory: String) { try? FileManager.default.removeItem(atPath: directory) }

    func removeDirectories() {
        delete(disk)
        delete(memory)
    }

    /// Has a virtual machine's host give it so much memory now, so that no contestant waits for that.
    func warmMemory(bytes: Int) throws {
        try ChildProcess(["sh", "-c", "head -c \(bytes) /dev/zero >'\(memory)/warm'; rm '\(memory)/warm'"]).succeed()
    }

    // MARK: Measuring

    func add(
        _ name: String, against peer: String, unit: String, figure: Comparison.Figure = .ratio,
        target: Comparison.Target, deferd: [Double], peer others: [Double]
    ) {
        let comparison = Comparison(
            name: name, peer: peer, unit: unit, figure: figure, target: target, pairs: Array(zip(deferd, others)))
        comparisons.append(comparison)
        log("  \(comparison.columns.joined(separator: " | "))")
    }

    /// Something that the reader of the table has to know.
    func note(_ text: String) {
        log(text)
        notes.append("- \(text)")
    }

    func log(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }

    /// Runs the contestants this many times, starting with another one in each round, so disturbances affect all.
    ///
    /// The result has the samples of each contestant, in the order of the rounds.
    func rounds<Sample>(_ usual: Int, _ contestants: [() throws -> Sample]) throws -> [[Sample]] {
        var samples: [[Sample]] = contestants.map { _ in [] }
        for round in 0..<(rounds ?? usual) {
            for offset in contestants.indices {
                let index = (round + offset) % contestants.count
                // Writes of one contestant must not reach the disk while another is measured.
                sync()
                samples[index].append(try contestants[index]())
            }
        }
        return samples
    }
}

/// Why a measurement could not be taken.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    /// A failed system call; create this directly after the call.
    static func system(_ action: String) -> BenchError {
        BenchError("Cannot \(action): \(String(cString: strerror(errno))).")
    }
}

/// A row of the table, which can be measured alone.
struct Row {
    let name: String
    let title: String
    let measure: (Bench) throws -> Void

    static var all: [Row] {
        [
            .submit, .small, .programs, .large, .segments, .latency, .client, .start, .idle, .memory, .size, .progress,
            .machines,
        ]
    }
}
