/// What is wrong with the configuration, and where.
struct ConfigurationError: Error, CustomStringConvertible {
    /// The file with its line, the variable or the flag.
    let place: String
    let key: String?
    let reason: String

    var description: String { [place, key, reason].compactMap(\.self).joined(separator: ": ") }
}
