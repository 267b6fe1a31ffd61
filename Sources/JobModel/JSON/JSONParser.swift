/// Parses one JSON value (RFC 8259) from UTF-8 bytes, strictly and with bounds on depth and memory.
///
/// Foundation's parser loses the digits of numbers and does not bound memory, and parsing is the hot path of every
/// request: JSONSerialization takes 6 times as long for 430 bytes.
package struct JSONParser {
    private let bytes: UnsafeBufferPointer<UInt8>
    private let maximumDepth: Int
    private let budget: Int
    /// Whether ``String/mostCombining`` holds, as it does for text that is not the daemon's own.
    private let boundsCombining: Bool
    private var position = 0
    private var depth = 0
    /// The approximate memory of the values so far, in bytes.
    private var cost = 0
    /// The offset of the value that was looked up.
    private var found: Int?

    private init(
        _ bytes: UnsafeBufferPointer<UInt8>, maximumDepth: Int, budget: Int, boundsCombining: Bool = false
    ) {
        self.bytes = bytes
        self.maximumDepth = maximumDepth
        self.budget = budget
        self.boundsCombining = boundsCombining
    }

    /// Parses the single value in `bytes` and returns its approximate memory in bytes.
    /// Exceeding `budget` is an error: a value of a few bytes takes thirty times as many.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, maximumDepth: Int = 64, budget: Int = .max, boundsCombining: Bool = false
    ) throws(JSONSyntaxError) -> (value: JSON, cost: Int) {
        var parser = JSONParser(
            bytes.assumingMemoryBound(to: UInt8.self), maximumDepth: maximumDepth, budget: budget,
            boundsCombining: boundsCombining)
        let value = try parser.value()
        try parser.end()
        return (value, parser.cost)
    }

    /// Parses only the value at `pointer`, nil if absent, and returns it with its memory.
    /// The rest is checked as strictly but takes no memory.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, at pointer: JSONPointer, maximumDepth: Int = 64, budget: Int,
        boundsCombining: Bool = false
    ) throws(JSONSyntaxError) -> (value: JSON?, cost: Int) {
        var parser = JSONParser(
            bytes.assumingMemoryBound(to: UInt8.self), maximumDepth: maximumDepth, budget: budget,
            boundsCombining: boundsCombining)
        let value = try parser.value(at: pointer.tokens[...])
        try parser.end()
        return (value, parser.cost)
    }

    /// The offset of the value at `pointer` in JSON text; nil without one.
    package static func offset(of pointer: JSONPointer, in bytes: [UInt8]) -> Int? {
        bytes.withUnsafeBufferPointer { bytes in
            var parser = JSONParser(bytes, maximumDepth: 64, budget: .max)
            _ = try? parser.value(at: pointer.tokens[...])
            return parser.found
        }
    }

    /// Whether arrays and objects in JSON text nest at most `depth` levels deep.
    package static func nests(_ bytes: [UInt8], atMost depth: Int) -> Bool {
        bytes.withUnsafeBufferPointer { bytes in
            var (index, level) = (0, 0)
            while index < bytes.count {
                switch bytes[index] {
                case UInt8(ascii: "["), UInt8(ascii: "{"):
                    level += 1
                    if level > depth { return false }
                case UInt8(ascii: "]"), UInt8(ascii: "}"): level -= 1
                case UInt8(ascii: "\""):
                    // To the end of the string; an escape takes two bytes at least.
                    index = JSONWriter.plainEnd(UnsafeRawBufferPointer(bytes), from: index + 1)
                    while index < bytes.count, bytes[index] == UInt8(ascii: "\\") {
                        index = JSONWriter.plainEnd(UnsafeRawBufferPointer(bytes), from: index + 2)
                    }
                default: break
                }
                index += 1
            }
            return true
        }
    }

    private mutating func end() throws(JSONSyntaxError) {
        skipSpace()
        guard position == bytes.count else { throw fault("there is more after the value") }
    }

    /// Memory in bytes: of a value in an array, which may have room for twice as many; of an object with its first
    /// members; of an array itself; of a long text besides its bytes.
    fileprivate enum Cost {
        static let value = 32
        static let object = 160
        static let array = 48
        static let text = 48
        /// Shorter texts are stored inline.
        static let longestInline = 15
    }

    private mutating func add(_ bytes: Int) throws(JSONSyntaxError) {
        cost += bytes
        guard cost <= budget else {
            throw JSONSyntaxError("its values take more than \(budget) bytes of memory", at: position, isTooLarge: true)
        }
    }

    private mutating func add(text length: Int) throws(JSONSyntaxError) {
        if length > Cost.longestInline { try add(Cost.text + length) }
    }

    // MARK: Looking up one value

    /// Checks the next value, and returns the part of it at `tokens`; nil discards all of it.
    private mutating func value(at tokens: ArraySlice<String>?) throws(JSONSyntaxError) -> JSON? {
        skipSpace()
        if let tokens, tokens.isEmpty {
            found = position
            return try value()
        }
        var found: JSON?
        switch current {
        case UInt8(ascii: "{"):
            try each(until: UInt8(ascii: "}")) { (parser) throws(JSONSyntaxError) in
                let name = try parser.memberName()
                let isWanted = tokens?.first.map(name.hasSameBytes) ?? false
                let value = try parser.value(at: isWanted ? tokens?.dropFirst() : nil)
                if isWanted { found = value }
            }
        case UInt8(ascii: "["):
            let wanted = tokens?.first.flatMap(JSONPointer.index)
            var index = 0
            try each(until: UInt8(ascii: "]")) { (parser) throws(JSONSyntaxError) in
                let value = try parser.value(at: index == wanted ? tokens?.dropFirst() : nil)
                if index == wanted { found = value }
                index += 1
            }
        case UInt8(ascii: "\""): _ = try string()
        case UInt8(ascii: "-"), (UInt8(ascii: "0")...UInt8(ascii: "9"))?: _ = try number()
        default: _ = try scalar()
        }
        return found
    }

    // MARK: Reading values

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
        try add(Cost.value)
        switch current {
        case UInt8(ascii: "{"): return .object(try object())
        case UInt8(ascii: "["): return .array(try array())
        case UInt8(ascii: "\""):
            let text = try string()
            try add(text: text.utf8.count)
            return .string(text)
        case UInt8(ascii: "-"), (UInt8(ascii: "0")...UInt8(ascii: "9"))?:
            let number = try number()
            try add(text: number.text.utf8.count)
            return .number(number)
        default: return try scalar()
        }
    }

    /// Parses `true`, `false` or `null`.
    private mutating func scalar() throws(JSONSyntaxError) -> JSON {
        switch current {
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case nil: throw fault("the value is missing")
        default: throw fault("expected a value")
        }
    }

    /// Calls `body` at each member or element up to the closing `bracket`.
    private mutating func each(
        until bracket: UInt8, _ body: (inout JSONParser) throws(JSONSyntaxError) -> Void
    ) throws(JSONSyntaxError) {
        depth += 1
        guard depth <= maximumDepth else { throw fault("nested deeper than \(maximumDepth) levels") }
        position += 1
        skipSpace()
        if current == bracket {
            position += 1
        } else {
            repeat { try body(&self) } while try !closes(with: bracket)
        }
        depth -= 1
    }

    private mutating func object() throws(JSONSyntaxError) -> JSONObject {
        var members: [JSONObject.Member] = []
        try each(until: UInt8(ascii: "}")) { (parser) throws(JSONSyntaxError) in
            if members.isEmpty {
                try parser.add(Cost.object)
                members.reserveCapacity(4)
            }
            let name = try parser.memberName()
            try parser.add(text: name.utf8.count)
            members.append(JSONObject.Member(name: name, value: try parser.value()))
        }
        return JSONObject(members)
    }

    /// Parses a member's name and the colon after it.
    private mutating func memberName() throws(JSONSyntaxError) -> String {
        skipSpace()
        guard current == UInt8(ascii: "\"") else { throw fault("a member's name is missing") }
        let name = try string()
        skipSpace()
        guard current == UInt8(ascii: ":") else { throw fault("a colon is missing") }
        position += 1
        return name
    }

    private mutating func array() throws(JSONSyntaxError) -> [JSON] {
        var elements: [JSON] = []
        try each(until: UInt8(ascii: "]")) { (parser) throws(JSONSyntaxError) in
            if elements.isEmpty { try parser.add(Cost.array) }
            elements.append(try parser.value())
        }
        return elements
    }

    /// Consumes the separator after an element; returns whether it is the closing bracket.
    private mutating func closes(with bracket: UInt8) throws(JSONSyntaxError) -> Bool {
        skipSpace()
        guard let byte = current, byte == bracket || byte == UInt8(ascii: ",") else {
            throw fault("a comma or a closing bracket is missing")
        }
        position += 1
        return byte == bracket
    }

    private mutating func literal(_ word: StaticString, _ value: JSON) throws(JSONSyntaxError) -> JSON {
        let expected = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard bytes[position...].starts(with: expected) else { throw fault("expected a value") }
        position += expected.count
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
        position = JSONWriter.plainEnd(UnsafeRawBufferPointer(bytes), from: position)
        switch current {
        case UInt8(ascii: "\""):
            let text = try text(start..<position)
            try check(text, at: start)
            position += 1
            return text
        case UInt8(ascii: "\\"): return try escapedString(from: start)
        case nil: throw fault("a string is not closed")
        default: throw fault("a control character is not escaped")
        }
    }

    private func text(_ range: Range<Int>) throws(JSONSyntaxError) -> String {
        let utf8 = UnsafeBufferPointer(rebasing: bytes[range])
        // Validation costs several times as much, and ASCII needs none. The compiler vectorizes the reduction.
        if utf8.reduce(0, |) < 0x80 { return String(decoding: utf8, as: UTF8.self) }
        guard let text = String(validating: bytes[range], as: UTF8.self) else {
            throw JSONSyntaxError("a string is not UTF-8", at: range.lowerBound)
        }
        return text
    }

    private func check(_ text: String, at offset: Int) throws(JSONSyntaxError) {
        guard boundsCombining, text.combinesTooMuch else { return }
        throw JSONSyntaxError(
            "a string has more than \(String.mostCombining) combining characters in a row", at: offset)
    }

    private mutating func escapedString(from start: Int) throws(JSONSyntaxError) -> String {
        var text = try text(start..<position)
        while let byte = current {
            switch byte {
            case UInt8(ascii: "\""):
                try check(text, at: start)
                position += 1
                return text
            case UInt8(ascii: "\\"):
                position += 1
                text.unicodeScalars.append(try escape())
            case 0..<0x20: throw fault("a control character is not escaped")
            default:
                let run = position
                position = JSONWriter.plainEnd(UnsafeRawBufferPointer(bytes), from: position)
                text += try self.text(run..<position)
            }
        }
        throw fault("a string is not closed")
    }

    private mutating func escape() throws(JSONSyntaxError) -> Unicode.Scalar {
        guard let byte = current else { throw fault("a string is not closed") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            let unit = try hexadecimal()
            if let scalar = Unicode.Scalar(unit) { return scalar }
            for byte in "\\u".utf8 {
                guard current == byte else { throw fault("half of a surrogate pair stands alone") }
                position += 1
            }
            let second = try hexadecimal()
            guard (0xD800..<0xDC00).contains(unit), (0xDC00..<0xE000).contains(second),
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
            guard let digit = bytes[position].hexDigit else { throw fault("a hexadecimal digit is missing") }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }
}

extension JSON {
    /// The memory that the value takes when it is parsed from its text.
    /// It may take far less now, if its parts occur many times and share storage. Visits every value.
    package var parsedCost: Int {
        switch self {
        case .null, .bool: JSONParser.Cost.value
        case .number(let number): JSONParser.Cost.value + Self.cost(of: number.text)
        case .string(let text): JSONParser.Cost.value.saturatingAdding(Self.cost(of: text))
        case .array(let elements):
            elements.reduce(JSONParser.Cost.value + (elements.isEmpty ? 0 : JSONParser.Cost.array)) {
                $0.saturatingAdding($1.parsedCost)
            }
        case .object(let object):
            object.members.reduce(JSONParser.Cost.value + (object.members.isEmpty ? 0 : JSONParser.Cost.object)) {
                $0.saturatingAdding(Self.cost(of: $1.name)).saturatingAdding($1.value.parsedCost)
            }
        }
    }

    private static func cost(of text: String) -> Int {
        let length = text.utf8.count
        return length > JSONParser.Cost.longestInline ? JSONParser.Cost.text + length : 0
    }
}
