import Glibc

extension UnsafeRawBufferPointer {
    /// Whether these bytes stand somewhere in it.
    func contains(sequence needle: [UInt8]) -> Bool {
        guard let base = baseAddress, let first = needle.first else { return needle.isEmpty }
        var place = 0
        while count - place >= needle.count {
            guard let hit = memchr(base + place, Int32(first), count - place) else { return false }
            place = base.distance(to: hit)
            guard count - place >= needle.count else { return false }
            if memcmp(base + place, needle, needle.count) == 0 { return true }
            place += 1
        }
        return false
    }
}
