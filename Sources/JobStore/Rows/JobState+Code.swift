import JobModel

extension JobState {
    /// Its number in the database, which never changes.
    var code: Int64 {
        switch self {
        case .scheduled: 0
        case .queued: 1
        case .running: 2
        case .succeeded: 3
        case .failed: 4
        case .cancelled: 5
        }
    }

    /// The state of this number; nil if there is none.
    init?(code: Int64) {
        guard let state = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = state
    }
}
