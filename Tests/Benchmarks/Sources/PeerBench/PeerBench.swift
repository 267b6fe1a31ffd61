import Foundation
import Glibc

/// Compares deferd with alternative programs: `peerbench --deferd PATH [--markdown] [ROW..]`.
@main
enum PeerBench {
    static func main() {
        // A peer that ends early must not end the bench.
        signal(SIGPIPE, SIG_IGN)
        do {
            let settings = try BenchSettings(
                arguments: Array(CommandLine.arguments.dropFirst()), environment: ProcessInfo.processInfo.environment)
            let directories = try Directories(settings)
            defer { directories.remove() }
            var comparisons: [Comparison] = []
            var notes: [String] = []
            for row in Row.all where settings.rows.isEmpty || settings.rows.contains(row.name) {
                let bench = Bench(settings: settings, directories: directories)
                bench.log("\(row.name): \(row.title)")
                do {
                    try row.measure(bench)
                } catch {
                    notes.append("\(row.name): not measured. \(error)")
                    bench.log("not measured: \(error)")
                }
                comparisons += bench.comparisons
                notes += bench.notes.map { "\(row.name): \($0)" }
            }
            let table = Table(comparisons: comparisons, notes: notes, surroundings: Surroundings(settings).lines)
            print(settings.isMarkdown ? table.markdown : table.text)
        } catch {
            FileHandle.standardError.write(Data("peerbench: \(error)\n".utf8))
            exit(1)
        }
    }
}
