/// A JSON syntax error: a reason and a byte offset.
public struct JSONSyntaxError: Error, Equatable {
    /// The reason, as a clause.
    public let reason: String
    /// The offset of the faulty byte.
    public let offset: Int
    /// Whether the text is valid so far, but its values take too much memory.
    package let isTooLarge: Bool

    package init(_ reason: String, at offset: Int, isTooLarge: Bool = false) {
        self.reason = reason
        self.offset = offset
        self.isTooLarge = isTooLarge
    }
}

extension JSONSyntaxError: CustomStringConvertible {
    /// The reason and the offset.
    public var description: String { "\(reason) at byte \(offset)" }

    /// The line, the column, the reason and the text that was found there, of the text that was parsed.
    package func place(in text: some Collection<UInt8>, firstLine: Int = 1) -> String {
        let found = text.dropFirst(offset).prefix(32).prefix { $0 > 0x20 }
        let what = found.isEmpty ? "" : ", found `\(String(decoding: found, as: UTF8.self))`"
        let place = TextPlace(of: offset, in: text)
        return
            "line \(place.line + firstLine - 1), column \(place.column): \(reason)\(offset < text.count ? what : ", found the end")"
    }
}

/// A line and a column, in characters, both from 1.
package struct TextPlace: Sendable, Equatable {
    package let line: Int
    package let column: Int

    package init(line: Int, column: Int) { (self.line, self.column) = (line, column) }

    package init(of offset: Int, in text: some Collection<UInt8>) {
        let before = text.prefix(offset)
        line = before.reduce(1) { $1 == UInt8(ascii: "\n") ? $0 + 1 : $0 }
        let start = before.reversed().prefix { $0 != UInt8(ascii: "\n") }.reversed()
        column = String(decoding: start, as: UTF8.self).count + 1
    }
}

extension UInt8 {
    /// The value of this byte as an ASCII hexadecimal digit, or nil.
    var hexDigit: UInt8? { Character(Unicode.Scalar(self)).hexDigitValue.map(UInt8.init) }
}

extension JSON {
    /// Parses the single value in `text`; the default depth allows for deferd's own text around client values.
    public init(parsing text: String, maximumDepth: Int = 256) throws(JSONSyntaxError) {
        try self.init(parsing: Array(text.utf8), maximumDepth: maximumDepth)
    }

    /// Parses the single value in `bytes`, in UTF-8 and nested at most `maximumDepth` levels deep.
    public init(parsing bytes: [UInt8], maximumDepth: Int = 64) throws(JSONSyntaxError) {
        try self.init(parsing: bytes, maximumDepth: maximumDepth, budget: .max)
    }

    /// Parses a value that takes at most about `budget` bytes of memory.
    package init(parsing bytes: [UInt8], maximumDepth: Int, budget: Int) throws(JSONSyntaxError) {
        self = try bytes.withUnsafeBufferPointer { (bytes) throws(JSONSyntaxError) in
            try JSONParser.parse(UnsafeRawBufferPointer(bytes), maximumDepth: maximumDepth, budget: budget).value
        }
    }

    /// Parses text that was checked before it was stored; damaged text becomes `null`.
    package init(stored text: [UInt8]) {
        self = (try? JSON(parsing: text, maximumDepth: 512, budget: JobLimits.mostValues)) ?? .null
    }
}
