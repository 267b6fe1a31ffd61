/// The progress of a piece of work, in units chosen by the producer.
///
/// deferd's own data sources count bytes.
public struct ProgressUpdate: Sendable, Equatable {
    /// The units done so far.
    public let completed: Int64
    /// The total number of units; nil if unknown.
    public let total: Int64?

    /// Creates an update.
    public init(completed: Int64, total: Int64?) {
        self.completed = completed
        self.total = total
    }

    private static let scale: Double = 1_000_000_000

    /// Creates an update from a fraction of the whole: from 0 to 1; other values are clamped, and NaN counts as 0.
    public static func fraction(_ f: Double) -> ProgressUpdate {
        let clamped = f.isNaN ? 0 : min(max(f, 0), 1)
        return ProgressUpdate(completed: Int64((clamped * scale).rounded()), total: Int64(scale))
    }

    /// The fraction of the whole, from 0 to 1; nil while the total is unknown or 0.
    public var fraction: Double? {
        guard let total, total > 0 else { return nil }
        return min(max(Double(completed) / Double(total), 0), 1)
    }

    /// Returns whether this update is later in a progress that never falls.
    func rises(from former: ProgressUpdate) -> Bool {
        if completed < former.completed || (total == nil && former.total != nil) { return false }
        if let fraction, let before = former.fraction, fraction < before { return false }
        return self != former
    }
}
