import JobModel

extension JobState {
    /// The number that stands for it in the database; never changed.
    var code: Int64 { Int64(number) }

    /// The state that `code` stands for; nil for a number that no version has written.
    init?(code: Int64) {
        guard let state = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = state
    }
}
