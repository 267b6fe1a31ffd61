import Glibc

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
