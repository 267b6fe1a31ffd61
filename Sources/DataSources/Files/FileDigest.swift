import CCrypto
import JobModel

/// The SHA-256 of a file, computed by OpenSSL's libcrypto, and the digest by another algorithm if its checksum needs
/// that.
///
/// Unchecked, as only one task at a time uses the digest of a file.
package final class FileDigest: @unchecked Sendable {
    private let sha256Context: OpaquePointer
    /// Nil also if libcrypto lacks the algorithm, as it lacks MD5 in FIPS mode.
    private let otherContext: OpaquePointer?
    private let checksum: Checksum?

    init(for checksum: Checksum? = nil) {
        self.checksum = checksum
        guard let context = Self.context(Checksum.Algorithm.sha256.rawValue) else {
            fatalError("libcrypto has no SHA-256, or there is no memory for it.")
        }
        sha256Context = context
        otherContext = checksum.flatMap { $0.algorithm == .sha256 ? nil : Self.context($0.algorithm.rawValue) }
    }

    deinit {
        EVP_MD_CTX_free(sha256Context)
        EVP_MD_CTX_free(otherContext)
    }

    /// A context for the algorithm of this name; nil if there is none.
    static func context(_ name: String) -> OpaquePointer? {
        let context = EVP_MD_CTX_new()
        if EVP_DigestInit_ex(context, EVP_get_digestbyname(name), nil) == 1 { return context }
        EVP_MD_CTX_free(context)
        return nil
    }

    func update(_ bytes: UnsafeRawBufferPointer) {
        EVP_DigestUpdate(sha256Context, bytes.baseAddress, bytes.count)
        if let otherContext { EVP_DigestUpdate(otherContext, bytes.baseAddress, bytes.count) }
    }

    var sha256: String { Self.hexadecimal(sha256Context) }

    /// What differs from the checksum, as a clause; nil if nothing does.
    var mismatch: String? {
        guard let checksum else { return nil }
        guard let context = checksum.algorithm == .sha256 ? sha256Context : otherContext else {
            return "cannot be checked, as libcrypto lacks \(checksum.algorithm.name) on this machine"
        }
        return Self.mismatch(Self.hexadecimal(context), checksum)
    }

    static func mismatch(_ found: String, _ wanted: Checksum) -> String? {
        wanted.hexadecimal == found
            ? nil : "has the \(wanted.algorithm.name) \(found) instead of \(wanted.hexadecimal)"
    }

    /// The digest so far; the context can take more bytes.
    private static func hexadecimal(_ context: OpaquePointer) -> String {
        let copy = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(copy) }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_MD_CTX_copy_ex(copy, context) == 1, EVP_DigestFinal_ex(copy, &digest, &count) == 1 else {
            fatalError("There is no memory for a digest.")
        }
        return digest.prefix(Int(count)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    package static func sha256(of bytes: [UInt8]) -> String {
        let digest = FileDigest()
        bytes.withUnsafeBytes { digest.update($0) }
        return digest.sha256
    }
}
