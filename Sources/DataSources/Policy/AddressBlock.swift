/// The addresses that share a prefix: `169.254.0.0/16`.
struct AddressBlock: Sendable, Hashable {
    let prefix: IPAddress
    /// Bits of the prefix.
    let length: Int

    /// The block that `text` writes, with the length of a single address where it gives none.
    init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = IPAddress(parts[0]) else { return nil }
        let bits = address.bytes.count * 8
        guard let length = parts.count == 1 ? bits : Int(parts[1]), (0...bits).contains(length) else { return nil }
        prefix = address
        self.length = length
    }

    /// Whether `address` lies in the block. Only addresses of the prefix's own family do.
    func contains(_ address: IPAddress) -> Bool {
        guard address.bytes.count == prefix.bytes.count else { return false }
        let whole = length / 8
        guard address.bytes[..<whole] == prefix.bytes[..<whole] else { return false }
        guard length % 8 > 0 else { return true }
        return (address.bytes[whole] ^ prefix.bytes[whole]) >> UInt8(8 - length % 8) == 0
    }
}
