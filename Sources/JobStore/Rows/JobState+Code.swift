import JobModel

extension JobState {
    /// The number that stands for it in the database; never changed.
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

    /// The state that `code` stands for; nil for a number that no version has written.
    init?(code: Int64) {
        guard let state = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = state
    }
}
