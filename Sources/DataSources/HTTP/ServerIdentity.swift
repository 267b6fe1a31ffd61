import NIOSSL

/// The server that a certificate is for, by RFC 9525: only alternative names of the URL's kind count.
///
/// NIOSSL also accepts the address of the connection, whatever name was asked for, so a false name server or a proxy
/// could impersonate every server.
enum ServerIdentity {
    /// Whether a certificate is for `host`.
    static func of(_ certificate: NIOSSLCertificate, includes host: RequestURL.Host) -> Bool {
        certificate._subjectAlternativeNames().contains { name in
            switch host {
            case .name(let host): name.nameType == .dnsName && matches(Array(name.contents), host)
            case .address(let address): name.nameType == .ipAddress && Array(name.contents) == address.bytes
            }
        }
    }

    /// Whether a certificate's name matches `host`, in lower case. `*` stands for one whole label, the first, above at
    /// least two others.
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
