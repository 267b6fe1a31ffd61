import CCrypto
import JobModel

/// A digest, computed by OpenSSL's libcrypto.
struct Digest: Sendable {
    /// The state inside libcrypto.
    private final class Context: @unchecked Sendable {
        // Changed only while one digest refers to it; see `update(_:)`.
        private let pointer: OpaquePointer

        init(_ algorithm: Checksum.Algorithm) {
            let type =
                switch algorithm {
                case .sha256: EVP_sha256()
                case .sha512: EVP_sha512()
                case .sha1: EVP_sha1()
                case .md5: EVP_md5()
                }
            guard let pointer = EVP_MD_CTX_new(), EVP_DigestInit_ex(pointer, type, nil) == 1 else {
                fatalError("libcrypto has no \(algorithm.name), or there is no memory for it.")
            }
            self.pointer = pointer
        }

        private init(copying other: OpaquePointer) {
            guard let pointer = EVP_MD_CTX_new(), EVP_MD_CTX_copy_ex(pointer, other) == 1 else {
                fatalError("There is no memory for a digest.")
            }
            self.pointer = pointer
        }

        deinit { EVP_MD_CTX_free(pointer) }

        func copy() -> Context { withExtendedLifetime(self) { Context(copying: pointer) } }

        func update(_ bytes: UnsafeRawBufferPointer) {
            withExtendedLifetime(self) { _ = EVP_DigestUpdate(pointer, bytes.baseAddress, bytes.count) }
        }

        /// The digest; nothing can be added afterwards.
        func finish() -> [UInt8] {
            var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: UInt32 = 0
            withExtendedLifetime(self) { _ = EVP_DigestFinal_ex(pointer, &digest, &count) }
            return Array(digest.prefix(Int(count)))
        }
    }

    private var context: Context

    init(_ algorithm: Checksum.Algorithm) { context = Context(algorithm) }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        if !isKnownUniquelyReferenced(&context) { context = context.copy() }
        context.update(bytes)
    }

    /// The digest so far, as lower-case hexadecimal digits.
    var hexadecimal: String {
        context.copy().finish().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

/// The SHA-256 of a file, and the digest by another algorithm if its checksum needs that.
package struct FileDigest: Sendable {
    private var sha256Digest = Digest(.sha256)
    private var other: Digest?
    private let checksum: Checksum?

    init(for checksum: Checksum? = nil) {
        self.checksum = checksum
        if let checksum, checksum.algorithm != .sha256 { other = Digest(checksum.algorithm) }
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        sha256Digest.update(bytes)
        other?.update(bytes)
    }

    /// As lower-case hexadecimal digits.
    var sha256: String { sha256Digest.hexadecimal }

    /// What differs from the checksum, as a clause; nil if nothing does.
    var mismatch: String? { checksum.flatMap { Self.mismatch(other?.hexadecimal ?? sha256, $0) } }

    static func mismatch(_ found: String, _ wanted: Checksum) -> String? {
        wanted.hexadecimal == found
            ? nil : "has the \(wanted.algorithm.name) \(found) instead of \(wanted.hexadecimal)"
    }

    package static func sha256(of bytes: [UInt8]) -> String {
        var digest = Digest(.sha256)
        bytes.withUnsafeBytes { digest.update($0) }
        return digest.hexadecimal
    }
}
