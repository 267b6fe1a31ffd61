import SystemPackage
import Glibc

extension NameResolver {
    /// Asks the system: getaddrinfo(3), in whose order the addresses come.
    package static let system: Lookup = { name in
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(name, nil, &hints, &list)
        guard result == 0 else {
            let code = errno
            let reason =
                result == EAI_SYSTEM ? Errno(rawValue: code).description : String(cString: gai_strerror(result))
            return .failure(Failure(reason: reason))
        }
        defer { freeaddrinfo(list) }
        var addresses: [IPAddress] = []
        var entry = list
        while let info = entry {
            if let address = IPAddress(info.pointee), !addresses.contains(address) {
                addresses.append(address)
            }
            entry = info.pointee.ai_next
        }
        return addresses.isEmpty ? .failure(Failure(reason: "it has no address")) : .success(addresses)
    }
}

extension IPAddress {
    /// The address of an entry, or nil for one of another family.
    ///
    /// Read from what getnameinfo(3) writes: NIO includes the same C headers, and in a build of the whole module the
    /// compiler takes the members of `sockaddr_in` for those of NIO's own module, which cannot be imported.
    fileprivate init?(_ entry: addrinfo) {
        var text = [UInt8](repeating: 0, count: 128)
        let result = text.withUnsafeMutableBytes { text in
            text.withMemoryRebound(to: CChar.self) { text in
                getnameinfo(
                    entry.ai_addr, entry.ai_addrlen, text.baseAddress, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
            }
        }
        guard result == 0 else { return nil }
        // A zone ("%eth0") only names the interface to be used.
        self.init(String(decoding: text.prefix { $0 != 0 && $0 != UInt8(ascii: "%") }, as: UTF8.self))
    }
}
