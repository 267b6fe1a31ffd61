import NIOSSL

/// Whom a certificate is for, as RFC 9525 has it: its alternative names of the kind that the URL names, and nothing else.
///
/// NIOSSL's own check also takes an address that is the one connected to, whatever name was asked for: whoever answers for
/// a name could lead it to an address of theirs, and a proxy could be every server.
enum ServerIdentity {
    /// Whether it is for `host`.
    static func of(_ certificate: NIOSSLCertificate, includes host: RequestURL.Host) -> Bool {
        certificate._subjectAlternativeNames().contains { name in
            switch host {
            case .name(let host): name.nameType == .dnsName && matches(Array(name.contents), host)
            case .address(let address): name.nameType == .ipAddress && Array(name.contents) == address.bytes
            }
        }
    }

    /// Whether the name of a certificate is `host`, in lower case, or stands for it: `*` is one whole label, the first, above
    /// two others at least.
    static func matches(_ name: [UInt8], _ host: String) -> Bool {
        guard !name.isEmpty, name.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return false }
        var name = Substring(String(decoding: name, as: UTF8.self).lowercased())
        if name.hasSuffix(".") { name.removeLast() }
        if name == host { return true }
        guard name.hasPrefix("*."), let dot = host.firstIndex(of: "."), dot > host.startIndex else { return false }
        let parent = name.dropFirst()
        return parent == host[dot...] && parent.dropFirst().contains(".")
    }
}
