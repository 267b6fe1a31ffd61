/// A location in a JSON value in RFC 6901 notation: `/assets/0/url`.
package struct JSONPointer: Sendable, Hashable {
    /// The reference tokens from the root, unescaped.
    package var tokens: [String]

    package init(_ tokens: [String] = []) { self.tokens = tokens }

    /// Parses `text`; nil if it does not begin with a slash or has an invalid `~` escape.
    package init?(text: String) {
        guard text.isEmpty || text.utf8.first == UInt8(ascii: "/") else { return nil }
        var tokens: [String] = []
        // Split by scalars: Swift joins a slash and a following combining character into one character.
        let parts = text.unicodeScalars.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for part in text.isEmpty ? [] : parts {
            guard let token = Self.unescaped(part) else { return nil }
            tokens.append(token)
        }
        self.init(tokens)
    }

    private static func unescaped(_ part: Substring.UnicodeScalarView) -> String? {
        let pieces = part.split(separator: "~", omittingEmptySubsequences: false)
        var token = String(pieces[0])
        for piece in pieces.dropFirst() {
            guard let digit = piece.first, digit == "0" || digit == "1" else { return nil }
            token += digit == "0" ? "~" : "/"
            token.unicodeScalars += piece.dropFirst()
        }
        return token
    }

    /// Returns the array index that a token denotes, or nil.
    static func index(_ token: String) -> Int? {
        guard token == "0" || token.utf8.first != UInt8(ascii: "0"),
            token.utf8.allSatisfy({ (48...57).contains($0) })
        else { return nil }
        return Int(token)
    }

    /// One allocation; reading a spec makes several pointers for each member.
    package func appending(_ token: String) -> JSONPointer {
        var longer: [String] = []
        longer.reserveCapacity(tokens.count + 1)
        longer.append(contentsOf: tokens)
        longer.append(token)
        return JSONPointer(longer)
    }

    package func appending(_ index: Int) -> JSONPointer { appending(String(index)) }
}

extension JSONPointer: CustomStringConvertible {
    /// The pointer in RFC 6901 notation.
    package var description: String {
        tokens.map { token in
            "/" + token.unicodeScalars.map { $0 == "~" ? "~0" : $0 == "/" ? "~1" : String($0) }.joined()
        }.joined()
    }
}
