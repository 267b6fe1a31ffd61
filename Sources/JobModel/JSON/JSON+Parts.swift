extension JSON {
    /// Gives the JSON text of the value in parts of `size` bytes, of which the last is shorter, so that a long text is never
    /// whole in memory.
    package func eachPart(ofSize size: Int, _ body: ([UInt8]) throws -> Void) throws {
        var parts = JSONParts(size: size)
        try parts.write(self, body)
        try parts.finish(body)
    }
}

private struct JSONParts {
    /// Bytes of a text that are written at once: as many as six times that where each has to be escaped.
    private static let slice = 1 << 16

    let size: Int
    private var writer = JSONWriter()

    init(size: Int) {
        self.size = max(1, size)
    }

    mutating func write(_ value: JSON, _ body: ([UInt8]) throws -> Void) throws {
        switch value {
        case .null, .bool, .number: writer.write(value)
        case .string(let text): try write(text, body)
        case .array(let elements):
            writer.raw("[")
            for (index, element) in elements.enumerated() {
                if index > 0 { writer.raw(",") }
                try write(element, body)
            }
            writer.raw("]")
        case .object(let object):
            writer.raw("{")
            for (index, member) in object.members.enumerated() {
                if index > 0 { writer.raw(",") }
                try write(member.name, body)
                writer.raw(":")
                try write(member.value, body)
            }
            writer.raw("}")
        }
        try giveFullParts(body)
    }

    private mutating func write(_ text: String, _ body: ([UInt8]) throws -> Void) throws {
        writer.raw("\"")
        var text = text
        try text.withUTF8 { utf8 in
            for start in stride(from: 0, to: utf8.count, by: Self.slice) {
                writer.writeEscaped(
                    UnsafeRawBufferPointer(
                        rebasing: UnsafeRawBufferPointer(utf8)[start..<min(start + Self.slice, utf8.count)]))
                try giveFullParts(body)
            }
        }
        writer.raw("\"")
    }

    private mutating func giveFullParts(_ body: ([UInt8]) throws -> Void) throws {
        guard writer.bytes.count >= size else { return }
        var start = 0
        while writer.bytes.count - start >= size {
            try body(Array(writer.bytes[start..<start + size]))
            start += size
        }
        writer.removeFirst(start)
    }

    mutating func finish(_ body: ([UInt8]) throws -> Void) throws {
        if !writer.bytes.isEmpty { try body(writer.bytes) }
    }
}
