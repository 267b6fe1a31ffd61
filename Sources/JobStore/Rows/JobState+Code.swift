package import JobModel

extension JobState {
    /// Its number in the database, which never changes.
    package var code: Int64 {
        switch self {
        case .scheduled: 0
        case .queued: 1
        case .running: 2
        case .held: 3
        case .succeeded: 4
        case .failed: 5
        case .cancelled: 6
        }
    }

    /// The state of this number; nil if there is none.
    package init?(code: Int64) {
        guard let state = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = state
    }
}
