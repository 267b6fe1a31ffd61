/// A file that tests download, with its digest as `sha256sum` tells it.
enum Sample {
    /// 100,000 bytes without a short period.
    static let content = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }
    static let sha256 = "e6887b97dc43bee2e548c4d77ebcb42cbef96a0df13f1c972da7ae646fcab313"
    /// 4,000,000 bytes: so many that an unfinished download is worth noting.
    static let large = [[UInt8]](repeating: content, count: 40).flatMap(\.self)
    static let largeSHA256 = "b5a9bc2581916ff3f657b3dcce46b789b11166d8c7d134398f7c2848ab46d0a7"
    /// The digest of something else.
    static let otherSHA256 = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
}
