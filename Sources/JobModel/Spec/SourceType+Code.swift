extension SourceType {
    /// The number that stands for it in stored plans; a number is never used again for another type.
    package var code: UInt8 {
        switch self {
        case .url: 0
        case .download: 1
        case .json: 2
        case .list: 3
        case .each: 4
        case .value: 5
        case .error: 6
        case .timer: 7
        case .upload: 8
        case .program: 9
        }
    }

    package init?(code: UInt8) {
        guard let type = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = type
    }
}
