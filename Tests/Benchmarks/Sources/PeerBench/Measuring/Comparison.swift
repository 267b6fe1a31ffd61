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

    let name: String
    let peer: String
    let unit: String
    let figure: Figure
    let target: Target
    let pairs: [(deferd: Double, peer: Double)]

    /// The table's columns.
    var columns: [String] {
        let figures = Spread(
            pairs.map { pair in
                switch figure {
                case .ratio: pair.deferd / pair.peer
                case .difference: pair.deferd - pair.peer
                case .own: pair.deferd
                }
            })
        let (bound, isMet) =
            switch target {
            case .atLeast(let bound): ("≥ \(Self.short(bound))", figures.median >= bound)
            case .atMost(let bound): ("≤ \(Self.short(bound))", figures.median <= bound)
            }
        let kind =
            switch figure {
            case .ratio: ""
            case .difference: " more"
            case .own: " (own)"
            }
        let (own, other) = (Spread(pairs.map(\.deferd)).median, Spread(pairs.map(\.peer)).median)
        return [
            name, peer, "\(Self.short(own)) \(unit)", figure == .own ? "–" : "\(Self.short(other)) \(unit)",
            Self.short(figures.median) + kind, "\(Self.short(figures.low))–\(Self.short(figures.high))",
            String(pairs.count), bound, isMet ? "yes" : "MISSED",
        ]
    }

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
