import Glibc

/// Counts the lines from a server, and checks the beginning of each.
struct AnswerScanner {
    /// Every line begins with it, or it is a refusal.
    let first: UInt8
    /// Bytes that only a refusal has, near its beginning.
    let refusal: [UInt8]
    private var isLineStart = true

    init(first: Character, refusal: String) {
        self.first = first.asciiValue ?? 0
        self.refusal = Array(refusal.utf8)
    }

    /// The lines that end in `bytes`.
    mutating func lines(in bytes: UnsafeRawBufferPointer) throws -> Int {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return 0 }
        var lines = 0
        var offset = 0
        while offset < bytes.count {
            if isLineStart {
                let head = UnsafeRawBufferPointer(rebasing: bytes[offset..<min(offset + 48, bytes.count)])
                guard bytes[offset] == first, !head.contains(sequence: refusal) else { throw refused(head) }
            }
            guard let end = memchr(base + offset, 10, bytes.count - offset) else {
                isLineStart = false
                return lines
            }
            lines += 1
            offset = base.distance(to: end) + 1
            isLineStart = true
        }
        return lines
    }

    private func refused(_ bytes: UnsafeRawBufferPointer) -> BenchError {
        BenchError("The server refused: \(String(decoding: bytes.prefix(400), as: UTF8.self))")
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes stand somewhere in it.
    func contains(sequence needle: [UInt8]) -> Bool {
        guard let base = baseAddress, let first = needle.first else { return needle.isEmpty }
        var offset = 0
        while count - offset >= needle.count {
            guard let hit = memchr(base + offset, Int32(first), count - offset) else { return false }
            offset = base.distance(to: hit)
            guard count - offset >= needle.count else { return false }
            if memcmp(base + offset, needle, needle.count) == 0 { return true }
            offset += 1
        }
        return false
    }
}
