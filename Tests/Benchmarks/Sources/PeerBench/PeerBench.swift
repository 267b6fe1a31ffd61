import Foundation
import Glibc

/// Compares deferd with alternative programs, and prints a table: `peerbench DEFERD [ROW..]`.
@main
enum PeerBench {
    private static let heads = ["row", "against", "deferd", "peer", "figure", "spread", "rounds", "target", "met"]

    static func main() {
        // A peer that ends early must not end the bench.
        signal(SIGPIPE, SIG_IGN)
        do {
            var names = CommandLine.arguments.dropFirst()
            guard let daemon = names.popFirst() else { throw BenchError("Name the daemon: peerbench DEFERD [ROW..]") }
            for name in names where !Row.all.contains(where: { $0.name == name }) {
                throw BenchError("There is no row \(name); known are \(Row.all.map(\.name).joined(separator: ", ")).")
            }
            let bench = try Bench(daemon: daemon)
            defer { bench.removeDirectories() }
            for row in Row.all where names.isEmpty || names.contains(row.name) {
                bench.log("\(row.name): \(row.title)")
                do { try row.measure(bench) } catch { bench.note("\(row.name): not measured. \(error)") }
            }
            for columns in [heads, heads.map { _ in "---" }] + bench.comparisons.map(\.columns) {
                print("| \(columns.joined(separator: " | ")) |")
            }
            for line in [""] + Surroundings.lines(daemon: daemon) + bench.notes { print(line) }
        } catch {
            FileHandle.standardError.write(Data("peerbench: \(error)\n".utf8))
            exit(1)
        }
    }
}
