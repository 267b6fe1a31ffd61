/// Why bytes are not JSON: a sentence and the offset of the byte it is about.
public struct JSONSyntaxError: Error, Equatable {
    /// What is wrong, as a clause.
    public let reason: String
    /// Where, in bytes from the beginning.
    public let offset: Int
    /// Whether the text is valid so far, but its values take more memory than allowed.
    package let isTooLarge: Bool

    package init(_ reason: String, at offset: Int, isTooLarge: Bool = false) {
        self.reason = reason
        self.offset = offset
        self.isTooLarge = isTooLarge
    }
}

extension JSONSyntaxError: CustomStringConvertible {
    /// The reason with its offset.
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
    /// What this byte stands for behind a backslash; nil for `u` and for what is no escape.
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
    /// The value of this byte as a hexadecimal digit in ASCII; nil where it is none.
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
    /// The scalar that a surrogate pair of UTF-16 stands for; `high` is the first of the pair.
    init?(high: UInt32, low: UInt32) {
        guard (0xDC00..<0xE000).contains(low) else { return nil }
        self.init(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    }
}

extension JSONParser {
    /// The one value in `bytes`; anything but white space around it is an error.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, maximumDepth: Int = 64
    ) throws(JSONSyntaxError) -> JSON {
        try parse(bytes, maximumDepth: maximumDepth, budget: .max).value
    }
}

extension JSON {
    /// The one value in `text`. The default bound on its depth is for text of our own, which wraps what clients sent.
    public init(parsing text: String, maximumDepth: Int = 256) throws(JSONSyntaxError) {
        var text = text
        let parsed = text.withUTF8 { utf8 in
            Result { () throws(JSONSyntaxError) in
                try JSONParser.parse(UnsafeRawBufferPointer(utf8), maximumDepth: maximumDepth)
            }
        }
        self = try parsed.get()
    }

    /// The one value in `bytes`, in UTF-8 and nested at most `maximumDepth` levels deep.
    public init(parsing bytes: [UInt8], maximumDepth: Int = 64) throws(JSONSyntaxError) {
        try self.init(parsing: bytes, maximumDepth: maximumDepth, budget: .max)
    }

    /// The same of a value that takes at most about `budget` bytes of memory.
    package init(parsing bytes: [UInt8], maximumDepth: Int, budget: Int) throws(JSONSyntaxError) {
        let parsed = bytes.withUnsafeBytes { raw in
            Result { () throws(JSONSyntaxError) in
                try JSONParser.parse(raw, maximumDepth: maximumDepth, budget: budget).value
            }
        }
        self = try parsed.get()
    }

    /// A text that was checked before it was stored; `null` where it is damaged.
    package init(stored text: [UInt8]) {
        self = (try? JSON(parsing: text, maximumDepth: 512, budget: JobLimits.mostValues)) ?? .null
    }
}
