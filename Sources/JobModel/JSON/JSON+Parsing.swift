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
}

extension UnsafeBufferPointer<UInt8> {
    /// Whether no byte has its highest bit set.
    var isASCII: Bool {
        let raw = UnsafeRawBufferPointer(self)
        var index = 0
        while index + 8 <= count {
            if raw.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 { return false }
            index += 8
        }
        while index < count {
            if raw[index] >= 0x80 { return false }
            index += 1
        }
        return true
    }
}

extension UInt8 {
    /// The scalar that this byte denotes after a backslash; nil for `u` and for invalid escapes.
    var escapedScalar: Unicode.Scalar? {
        switch self {
        case UInt8(ascii: "\""): "\""
        case UInt8(ascii: "\\"): "\\"
        case UInt8(ascii: "/"): "/"
        case UInt8(ascii: "b"): "\u{8}"
        case UInt8(ascii: "f"): "\u{C}"
        case UInt8(ascii: "n"): "\n"
        case UInt8(ascii: "r"): "\r"
        case UInt8(ascii: "t"): "\t"
        default: nil
        }
    }
}

extension UInt8 {
    /// The value of this byte as an ASCII hexadecimal digit, or nil.
    var hexDigit: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension Unicode.Scalar {
    /// Creates the scalar of a UTF-16 surrogate pair; `high` is its first unit.
    init?(high: UInt32, low: UInt32) {
        guard (0xDC00..<0xE000).contains(low) else { return nil }
        self.init(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    }
}

extension JSONParser {
    /// Parses the single value in `bytes`; anything but white space around it is an error.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, maximumDepth: Int = 64
    ) throws(JSONSyntaxError) -> JSON {
        try parse(bytes, maximumDepth: maximumDepth, budget: .max).value
    }
}

extension JSON {
    /// Parses the single value in `text`; the default depth allows for deferd's own text around client values.
    public init(parsing text: String, maximumDepth: Int = 256) throws(JSONSyntaxError) {
        var text = text
        let parsed = text.withUTF8 { utf8 in
            Result { () throws(JSONSyntaxError) in
                try JSONParser.parse(UnsafeRawBufferPointer(utf8), maximumDepth: maximumDepth)
            }
        }
        self = try parsed.get()
    }

    /// Parses the single value in `bytes`, in UTF-8 and nested at most `maximumDepth` levels deep.
    public init(parsing bytes: [UInt8], maximumDepth: Int = 64) throws(JSONSyntaxError) {
        try self.init(parsing: bytes, maximumDepth: maximumDepth, budget: .max)
    }

    /// Parses a value that takes at most about `budget` bytes of memory.
    package init(parsing bytes: [UInt8], maximumDepth: Int, budget: Int) throws(JSONSyntaxError) {
        let parsed = bytes.withUnsafeBytes { raw in
            Result { () throws(JSONSyntaxError) in
                try JSONParser.parse(raw, maximumDepth: maximumDepth, budget: budget).value
            }
        }
        self = try parsed.get()
    }

    /// Parses text that was checked before it was stored; damaged text becomes `null`.
    package init(stored text: [UInt8]) {
        self = (try? JSON(parsing: text, maximumDepth: 512, budget: JobLimits.mostValues)) ?? .null
    }
}
