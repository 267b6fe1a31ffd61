/// Reads one JSON value (RFC 8259) from UTF-8 bytes, strictly and with a bound on its depth.
///
/// Foundation's coders lose the digits of numbers and the bound on nesting, and they are the hot path of every request.
package struct JSONParser {
    private let bytes: UnsafeBufferPointer<UInt8>
    private let maximumDepth: Int
    private var position = 0
    private var depth = 0

    private init(_ bytes: UnsafeBufferPointer<UInt8>, maximumDepth: Int) {
        self.bytes = bytes
        self.maximumDepth = maximumDepth
    }

    /// The one value in `bytes`; anything but white space around it is an error.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, maximumDepth: Int = 64
    ) throws(JSONSyntaxError) -> JSON {
        var parser = JSONParser(bytes.assumingMemoryBound(to: UInt8.self), maximumDepth: maximumDepth)
        let value = try parser.value()
        parser.skipSpace()
        guard parser.position == parser.bytes.count else { throw parser.fault("there is more after the value") }
        return value
    }

    private func fault(_ reason: String) -> JSONSyntaxError { JSONSyntaxError(reason, at: position) }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    private mutating func value() throws(JSONSyntaxError) -> JSON {
        skipSpace()
        guard let byte = current else { throw fault("the value is missing") }
        switch byte {
        case UInt8(ascii: "{"): return try nested { (parser) throws(JSONSyntaxError) in try parser.object() }
        case UInt8(ascii: "["): return try nested { (parser) throws(JSONSyntaxError) in try parser.array() }
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
        default: throw fault("this byte begins no value")
        }
    }

    private mutating func nested(
        _ body: (inout JSONParser) throws(JSONSyntaxError) -> JSON
    ) throws(JSONSyntaxError) -> JSON {
        depth += 1
        guard depth <= maximumDepth else { throw fault("nested deeper than \(maximumDepth) levels") }
        position += 1
        let value = try body(&self)
        depth -= 1
        return value
    }

    private mutating func object() throws(JSONSyntaxError) -> JSON {
        skipSpace()
        if current == UInt8(ascii: "}") {
            position += 1
            return .object(JSONObject())
        }
        var object = JSONObject(reservingCapacity: 4)
        while true {
            skipSpace()
            guard current == UInt8(ascii: "\"") else { throw fault("a member's name is missing") }
            let name = try string()
            skipSpace()
            guard current == UInt8(ascii: ":") else { throw fault("a colon is missing") }
            position += 1
            object.append(name, try value())
            if try closes(with: UInt8(ascii: "}")) { return .object(object) }
        }
    }

    private mutating func array() throws(JSONSyntaxError) -> JSON {
        var elements: [JSON] = []
        skipSpace()
        if current == UInt8(ascii: "]") {
            position += 1
            return .array(elements)
        }
        while true {
            elements.append(try value())
            if try closes(with: UInt8(ascii: "]")) { return .array(elements) }
        }
    }

    /// Consumes the separator after an element; true where it is the closing bracket.
    private mutating func closes(with bracket: UInt8) throws(JSONSyntaxError) -> Bool {
        skipSpace()
        guard let byte = current, byte == bracket || byte == UInt8(ascii: ",") else {
            throw fault("a comma or a closing bracket is missing")
        }
        position += 1
        return byte == bracket
    }

    private mutating func literal(_ word: StaticString, _ value: JSON) throws(JSONSyntaxError) -> JSON {
        let end = position + word.utf8CodeUnitCount
        guard end <= bytes.count,
            UnsafeBufferPointer(rebasing: bytes[position..<end])
                .elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
        else { throw fault("this byte begins no value") }
        position = end
        return value
    }

    private mutating func number() throws(JSONSyntaxError) -> JSONNumber {
        let start = position
        if current == UInt8(ascii: "-") { position += 1 }
        if current == UInt8(ascii: "0") {
            position += 1
        } else {
            try digits()
        }
        if current == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
            position += 1
            if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
        return JSONNumber(unchecked: String(decoding: bytes[start..<position], as: UTF8.self))
    }

    private mutating func digits() throws(JSONSyntaxError) {
        let start = position
        while let byte = current, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        guard position > start else { throw fault("a digit is missing") }
    }

    private mutating func string() throws(JSONSyntaxError) -> String {
        position += 1
        let start = position
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                let text = try text(start..<position)
                position += 1
                return text
            case UInt8(ascii: "\\"): return try escapedString(from: start)
            case 0..<0x20: throw fault("a control character is not escaped")
            default: position += 1
            }
        }
        throw fault("a string is not closed")
    }

    private func text(_ range: Range<Int>) throws(JSONSyntaxError) -> String {
        let utf8 = UnsafeBufferPointer(rebasing: bytes[range])
        // Validating costs several times as much, and plain ASCII has nothing to repair.
        if utf8.isASCII { return String(decoding: utf8, as: UTF8.self) }
        guard let text = String(validating: bytes[range], as: UTF8.self) else {
            throw JSONSyntaxError("a string is not UTF-8", at: range.lowerBound)
        }
        return text
    }

    private mutating func escapedString(from start: Int) throws(JSONSyntaxError) -> String {
        var text = try text(start..<position)
        while let byte = current {
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return text
            case UInt8(ascii: "\\"):
                position += 1
                text.unicodeScalars.append(try escape())
            case 0..<0x20: throw fault("a control character is not escaped")
            default:
                let run = position
                while let next = current, next != UInt8(ascii: "\""), next != UInt8(ascii: "\\"), next >= 0x20 {
                    position += 1
                }
                text += try self.text(run..<position)
            }
        }
        throw fault("a string is not closed")
    }

    private mutating func escape() throws(JSONSyntaxError) -> Unicode.Scalar {
        guard let byte = current else { throw fault("a string is not closed") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            let unit = try hexadecimal()
            if let scalar = Unicode.Scalar(unit) { return scalar }
            guard (0xD800..<0xDC00).contains(unit), current == UInt8(ascii: "\\") else {
                throw fault("half of a surrogate pair stands alone")
            }
            position += 1
            guard current == UInt8(ascii: "u") else { throw fault("half of a surrogate pair stands alone") }
            position += 1
            let second = try hexadecimal()
            guard (0xDC00..<0xE000).contains(second),
                let scalar = Unicode.Scalar(0x10000 + ((unit - 0xD800) << 10) + (second - 0xDC00))
            else { throw fault("half of a surrogate pair stands alone") }
            return scalar
        default:
            position -= 1
            throw fault("this character cannot be escaped")
        }
    }

    private mutating func hexadecimal() throws(JSONSyntaxError) -> UInt32 {
        guard position + 4 <= bytes.count else { throw fault("a string is not closed") }
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = Character(Unicode.Scalar(bytes[position])).hexDigitValue else {
                throw fault("a hexadecimal digit is missing")
            }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Whether no byte has its highest bit set.
    fileprivate var isASCII: Bool {
        let raw = UnsafeRawBufferPointer(self)
        var place = 0
        while place + 8 <= count {
            if raw.loadUnaligned(fromByteOffset: place, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 { return false }
            place += 8
        }
        while place < count {
            if raw[place] >= 0x80 { return false }
            place += 1
        }
        return true
    }
}

extension JSON {
    /// The one value that `text` writes. The bound on its depth is for text of our own, which wraps what clients sent.
    public init(parsing text: String, maximumDepth: Int = 256) throws(JSONSyntaxError) {
        var text = text
        let parsed = text.withUTF8 { utf8 in
            Result { () throws(JSONSyntaxError) in
                try JSONParser.parse(UnsafeRawBufferPointer(utf8), maximumDepth: maximumDepth)
            }
        }
        self = try parsed.get()
    }

    /// The one value that `bytes` write in UTF-8, at most `maximumDepth` levels deep.
    public init(parsing bytes: [UInt8], maximumDepth: Int = 64) throws(JSONSyntaxError) {
        let parsed = bytes.withUnsafeBytes { raw in
            Result { () throws(JSONSyntaxError) in try JSONParser.parse(raw, maximumDepth: maximumDepth) }
        }
        self = try parsed.get()
    }
}
