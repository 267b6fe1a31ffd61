/// Compares the first quarter with the last, and the state at rest before and after.
struct Verdict {
    private(set) var lines: [String] = []
    private(set) var isClean = true

    /// Compares quarters: the last may exceed `factor` times the first by `tolerance`.
    init(_ samples: [Sample], idleBefore: Sample, idleAfter: Sample) {
        let quarter = max(1, samples.count / 4)
        let (first, last) = (samples.prefix(quarter), samples.suffix(quarter))
        func compare(
            _ what: String, _ value: (Sample) -> Double, factor: Double, tolerance: Double, unit: String
        ) {
            let (before, after) = (Self.median(first.map(value)), Self.median(last.map(value)))
            check(after <= before * factor + tolerance, what, before, after, unit, "first quarter", "last quarter")
        }
        let mebibyte = 1_048_576.0
        compare("memory", { Double($0.resident) / mebibyte }, factor: 1.15, tolerance: 8, unit: "MiB")
        compare("descriptors", { Double($0.descriptors) }, factor: 1.1, tolerance: 16, unit: "")
        // Threads for files and queues are started on demand, more of them on a busy machine, and end after five
        // seconds without work. So the test is whether they end.
        compare("threads", { Double($0.threads) }, factor: 1, tolerance: 64, unit: "")
        compare("state", { Double($0.state) / mebibyte }, factor: 1.25, tolerance: 4, unit: "MiB")
        compare("downloads", { Double($0.downloads) / mebibyte }, factor: 1.1, tolerance: 4, unit: "MiB")
        // Others may be at work on this machine for a while, so that the best moments are compared, and loosely.
        let (before, after) = (Self.best(first), Self.best(last))
        check(after <= before * 3 + 10, "latency", before, after, "ms", "first quarter", "last quarter")
        // Without one job of the honest user there is nothing to measure.
        let (some, more) = (Self.measured(first), Self.measured(last))
        check(some > 0 && more > 0, "jobs of the honest user", some, more, "", "first quarter", "last quarter")
        for (what, before, after) in [
            ("descriptors", idleBefore.descriptors, idleAfter.descriptors),
            ("threads", idleBefore.threads, idleAfter.threads),
        ] {
            check(after <= before, what, Double(before), Double(after), "", "idle before", "idle after")
        }
        let (idle, left) = (Double(idleBefore.resident) / mebibyte, Double(idleAfter.resident) / mebibyte)
        check(left <= idle * 1.15 + 8, "memory", idle, left, "MiB", "idle before", "idle after")
    }

    private mutating func check(
        _ isGood: Bool, _ what: String, _ before: Double, _ after: Double, _ unit: String, _ first: String,
        _ second: String
    ) {
        if !isGood { isClean = false }
        func text(_ value: Double) -> String { "\((value * 10).rounded() / 10) \(unit)" }
        lines.append(
            "\(isGood ? "as before" : "GREW     ")  \(what): \(first) \(text(before)), \(second) \(text(after))")
    }

    /// The least median that an interval had.
    private static func best(_ samples: some Sequence<Sample>) -> Double {
        samples.map(\.median).filter { !$0.isNaN }.min() ?? 0
    }

    private static func measured(_ samples: some Sequence<Sample>) -> Double {
        Double(samples.reduce(0) { $0 + $1.latencies.count })
    }

    private static func median(_ values: [Double]) -> Double {
        let sorted = values.filter { !$0.isNaN }.sorted()
        return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
    }
}
