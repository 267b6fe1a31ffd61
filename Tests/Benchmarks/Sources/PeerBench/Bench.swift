import Foundation
import Glibc

/// The surroundings of a row: its directories, and the place for its measurements.
final class Bench {
    let settings: BenchSettings
    let directories: Directories
    private(set) var comparisons: [Comparison] = []
    private(set) var notes: [String] = []

    init(settings: BenchSettings, directories: Directories) {
        self.settings = settings
        self.directories = directories
    }

    func add(
        _ name: String, against peer: String, unit: String, figure: Comparison.Figure = .ratio,
        target: Comparison.Target?, deferd: [Double], peer others: [Double]
    ) {
        let comparison = Comparison(
            name: name, peer: peer, unit: unit, figure: figure, target: target,
            pairs: zip(deferd, others).map { Comparison.Pair(deferd: $0, peer: $1) })
        comparisons.append(comparison)
        log("  \(comparison.summary)")
    }

    /// Something the reader of the table has to know; said once.
    func note(_ text: String) {
        if !notes.contains(text) { notes.append(text) }
    }

    func log(_ text: String) {
        FileHandle.standardError.write(Data("\(text)\n".utf8))
    }

    /// Runs the contestants this many times, starting with another one in each round, so disturbances affect all.
    ///
    /// The result has the samples of each contestant, in the order of the rounds.
    func rounds<Sample>(_ usual: Int, _ contestants: [() throws -> Sample]) throws -> [[Sample]] {
        var samples: [[Sample]] = contestants.map { _ in [] }
        for round in 0..<(settings.rounds ?? usual) {
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

    init(_ description: String) {
        self.description = description
    }

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
            .submit, .small, .programs, .large, .segments, .latency, .start, .idle, .schedules, .memory, .size,
            .progress,
            .machines,
        ]
    }
}
