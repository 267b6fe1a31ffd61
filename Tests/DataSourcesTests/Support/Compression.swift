import Foundation

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
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["gzip", "-nc"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let handle = input.fileHandleForWriting
        Thread.detachNewThread {
            // Where it fails, what comes out is too short and the test fails.
            try? handle.write(contentsOf: Data(text.utf8))
            try? handle.close()
        }
        let compressed = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Array(compressed)
    }
}
