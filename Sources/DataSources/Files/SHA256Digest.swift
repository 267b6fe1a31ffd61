import CCrypto

/// A SHA-256 digest, computed by OpenSSL's libcrypto.
package struct SHA256Digest: Sendable {
    /// The state inside libcrypto.
    private final class Context: @unchecked Sendable {
        // Changed only while one digest refers to it; see `update(_:)`.
        private let pointer: OpaquePointer

        init() {
            guard let pointer = EVP_MD_CTX_new(), EVP_DigestInit_ex(pointer, EVP_sha256(), nil) == 1 else {
                fatalError("libcrypto has no SHA-256, or there is no memory for it.")
            }
            self.pointer = pointer
        }

        deinit { EVP_MD_CTX_free(pointer) }

        func copy() -> Context {
            let copy = Context()
            withExtendedLifetime(copy) { _ = EVP_MD_CTX_copy_ex(copy.pointer, pointer) }
            return copy
        }

        func update(_ bytes: UnsafeRawBufferPointer) {
            withExtendedLifetime(self) { _ = EVP_DigestUpdate(pointer, bytes.baseAddress, bytes.count) }
        }

        /// The digest; nothing can be added afterwards.
        func finish() -> [UInt8] {
            var digest = [UInt8](repeating: 0, count: 32)
            withExtendedLifetime(self) { _ = EVP_DigestFinal_ex(pointer, &digest, nil) }
            return digest
        }
    }

    private var context = Context()

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        if !isKnownUniquelyReferenced(&context) { context = context.copy() }
        context.update(bytes)
    }

    /// The digest so far, as lower-case hexadecimal digits.
    var hexadecimal: String {
        context.copy().finish().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    package static func hexadecimal(of bytes: [UInt8]) -> String {
        var digest = SHA256Digest()
        bytes.withUnsafeBytes { digest.update($0) }
        return digest.hexadecimal
    }
}
