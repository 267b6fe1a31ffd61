/// The digest that a file must have, written as `sha256:` and hexadecimal digits.
package struct Checksum: Sendable, Equatable {
    package enum Algorithm: String, Sendable, CaseIterable {
        case sha256, sha512, sha1, md5

        /// The number of hexadecimal digits.
        var digits: Int {
            switch self {
            case .sha256: 64
            case .sha512: 128
            case .sha1: 40
            case .md5: 32
            }
        }

        /// The name in messages.
        package var name: String { self == .md5 ? "MD5" : "SHA-" + rawValue.dropFirst(3) }
    }

    package let algorithm: Algorithm
    /// In lower case.
    package let hexadecimal: String

    init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, let algorithm = Algorithm(rawValue: parts[0].lowercased()),
            parts[1].utf8.count == algorithm.digits, parts[1].allSatisfy({ $0.isASCII && $0.isHexDigit })
        else { return nil }
        self.algorithm = algorithm
        hexadecimal = parts[1].lowercased()
    }
}

extension MemberReader {
    func checksum(_ name: String) throws(SpecError) -> Checksum? {
        try parsed(
            name, "\"\(name)\" must be \"sha256:\", \"sha512:\", \"sha1:\" or \"md5:\" and the hexadecimal digits.",
            by: Checksum.init)
    }
}
