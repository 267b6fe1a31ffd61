import Foundation

/// A line of the table: the cost of the same work with deferd and with another program, pair by pair.
struct Comparison {
    /// The figure that is compared with the target.
    enum Figure {
        /// deferd's part of the other's.
        case ratio
        /// The cost of deferd relative to the other program.
        case difference
        /// The cost of deferd alone.
        case own
    }

    enum Target {
        case atLeast(Double)
        case atMost(Double)
    }

    struct Pair {
        let deferd: Double
        let peer: Double
    }

    let name: String
    let peer: String
    let unit: String
    let figure: Figure
    let target: Target?
    let pairs: [Pair]

    /// The figure of each round.
    var figures: Spread {
        Spread(
            pairs.map { pair in
                switch figure {
                case .ratio: pair.deferd / pair.peer
                case .difference: pair.deferd - pair.peer
                case .own: pair.deferd
                }
            })
    }

    var deferd: Spread { Spread(pairs.map(\.deferd)) }
    var other: Spread { Spread(pairs.map(\.peer)) }

    /// Whether the median of the figures meets the target; nil without a target.
    var isMet: Bool? {
        switch target {
        case .atLeast(let bound): figures.median >= bound
        case .atMost(let bound): figures.median <= bound
        case nil: nil
        }
    }

    /// The table's columns, in the order of ``Table/heads``.
    var columns: [String] {
        let bound =
            switch target {
            case .atLeast(let bound): "≥ \(Self.short(bound))"
            case .atMost(let bound): "≤ \(Self.short(bound))"
            case nil: "–"
            }
        let kind =
            switch figure {
            case .ratio: ""
            case .difference: " more"
            case .own: " (own)"
            }
        return [
            name, peer, "\(Self.short(deferd.median)) \(unit)",
            figure == .own ? "–" : "\(Self.short(other.median)) \(unit)",
            Self.short(figures.median) + kind, "\(Self.short(figures.low))–\(Self.short(figures.high))",
            String(pairs.count), bound,
            isMet.map { $0 ? "yes" : "MISSED" } ?? "–",
        ]
    }

    var summary: String { columns.joined(separator: " | ") }

    /// About three digits: measured figures are not more precise.
    private static func short(_ value: Double) -> String {
        switch abs(value) {
        case 100...: String(format: "%.0f", value)
        case 10..<100: String(format: "%.1f", value)
        case 1..<10: String(format: "%.2f", value)
        default: value == 0 ? "0" : String(format: "%.3f", value)
        }
    }
}
