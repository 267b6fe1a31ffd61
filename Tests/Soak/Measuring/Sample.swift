import Foundation

/// The daemon's resources at one moment.
struct Sample {
    var seconds = 0.0
    var resident = 0
    var peak = 0
    var descriptors = 0
    var threads = 0
    /// The database with its log, and bodies.
    var state = 0
    var log = 0
    var downloads = 0
    /// Milliseconds from a submission of the honest user to its job's end, since the sample before.
    var latencies: [Double] = []
    var finished = 0

    var median: Double { quantile(0.5) }
    var slowest: Double { quantile(0.99) }

    private func quantile(_ share: Double) -> Double {
        let sorted = latencies.sorted()
        return sorted.isEmpty ? .nan : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }

    /// Looks at the process `pid` and its directories.
    init(of pid: Int32, state: String, downloads: String) {
        let status = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? ""
        func number(_ name: String) -> Int {
            status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
                .flatMap { $0.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } } ?? 0
        }
        resident = number("VmRSS") << 10
        peak = number("VmHWM") << 10
        threads = number("Threads")
        descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").count) ?? 0
        self.state = Self.size(below: state)
        log = Self.size(below: state) { $0.hasSuffix("-wal") }
        self.downloads = Self.size(below: downloads)
    }

    private static func size(below directory: String, where isCounted: (String) -> Bool = { _ in true }) -> Int {
        let paths = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
        return paths.filter(isCounted).reduce(0) { sum, path in
            var status = stat()
            return lstat(directory + "/" + path, &status) == 0 ? sum + Int(status.st_blocks) * 512 : sum
        }
    }

    static let heading =
        "      s   rss MiB  peak MiB  descriptors  threads  state MiB  wal MiB  downloads MiB   jobs  median ms   p99 ms"

    var row: String {
        func mebibytes(_ bytes: Int, _ width: Int) -> String {
            Self.padded(String(format: "%.1f", Double(bytes) / 1_048_576), width)
        }
        return Self.padded(String(Int(seconds)), 7) + mebibytes(resident, 10) + mebibytes(peak, 10)
            + Self.padded("\(descriptors)", 13) + Self.padded("\(threads)", 9) + mebibytes(state, 11)
            + mebibytes(log, 9)
            + mebibytes(downloads, 15) + Self.padded("\(finished)", 7)
            + Self.padded(String(format: "%.1f", median), 11) + Self.padded(String(format: "%.1f", slowest), 9)
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(1, width - text.count)) + text
    }
}
