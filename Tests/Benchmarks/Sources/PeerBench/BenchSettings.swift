import Foundation

/// The rows and programs to measure, from the command line and the environment.
struct BenchSettings {
    /// The daemon that is measured.
    var daemon = ""
    /// Names of the rows that are measured; empty for all.
    var rows: [String] = []
    /// How often each contestant runs; nil leaves it to the row.
    var rounds: Int?
    /// Seconds for which the row `machines` keeps a snapshot.
    var pinned = 300.0
    /// A directory on a disk, for durable files.
    var disk = ".build/peerbench"
    /// A directory in memory, for files that are only transferred.
    var memory = "/dev/shm"
    /// Whether the table is printed for the README.
    var isMarkdown = false

    init(arguments: [String], environment: [String: String]) throws {
        daemon = environment["DEFERD"] ?? ""
        rounds = environment["ROUNDS"].flatMap { Int($0) }
        pinned = environment["PINNED"].flatMap { Double($0) } ?? pinned
        disk = environment["BENCH_DISK"] ?? disk
        memory = environment["BENCH_MEMORY"] ?? memory
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--markdown": isMarkdown = true
            case "--deferd": daemon = rest.popFirst() ?? ""
            default: rows.append(argument)
            }
        }
        guard !daemon.isEmpty else {
            throw BenchError("Name the daemon: peerbench --deferd PATH [--markdown] [ROW..]")
        }
        for name in rows where !Row.all.contains(where: { $0.name == name }) {
            throw BenchError("There is no row \(name); known are \(Row.all.map(\.name).joined(separator: ", ")).")
        }
    }
}
