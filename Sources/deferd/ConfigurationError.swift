/// What is wrong with the configuration, and where.
struct ConfigurationError: Error, CustomStringConvertible {
    /// The file with its line, the variable or the flag.
    let location: String
    let key: String?
    let reason: String

    var description: String { [location, key, reason].compactMap(\.self).joined(separator: ": ") }
}
