import TestSupport

/// Compressed bodies.
enum Compression {
    /// `text` in the coding `gzip` or `deflate` (which is zlib's format).
    static func compressed(_ text: String, _ coding: String) throws -> [UInt8] {
        let gzip = try gzip(text)
        guard coding == "deflate" else { return gzip }
        // Both formats hold the same stream, with another header and another checksum around it.
        var (low, high): (UInt32, UInt32) = (1, 0)
        for byte in text.utf8 {
            low = (low + UInt32(byte)) % 65521
            high = (high + low) % 65521
        }
        let checksum = (high << 16 | low).bigEndian
        return [0x78, 0x9C] + gzip.dropFirst(10).dropLast(8) + withUnsafeBytes(of: checksum) { Array($0) }
    }

    private static func gzip(_ text: String) throws -> [UInt8] {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        return try SystemProgram(["/usr/bin/env", "gzip", "-nc", directory.write(text, to: "text")]).output
    }
}
