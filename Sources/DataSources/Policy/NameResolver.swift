import Glibc
import SystemPackage

/// The system's resolver, which can block for minutes and cannot be stopped.
package enum NameResolver {
    /// A resolver, which blocks.
    package typealias Lookup = @Sendable (_ name: String) -> Result<[IPAddress], Failure>

    /// The most lookups at a time for one user, and for all.
    static let perUser = 4
    static let total = 16

    package struct Failure: Error {
        let reason: String

        package init(reason: String) { self.reason = reason }
    }

    /// Calls getaddrinfo(3) and keeps its order.
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
            if let address = IPAddress(info.pointee), !addresses.contains(address) { addresses.append(address) }
            entry = info.pointee.ai_next
        }
        return addresses.isEmpty ? .failure(Failure(reason: "it has no address")) : .success(addresses)
    }
}

extension IPAddress {
    /// The address of an entry, or nil for another family.
    ///
    /// Read as bytes: in a build of the whole module, the compiler takes members of `sockaddr_in` for those of NIO's
    /// own module, which cannot be imported.
    fileprivate init?(_ entry: addrinfo) {
        let bytes = UnsafeRawBufferPointer(start: entry.ai_addr, count: Int(entry.ai_addrlen))
        switch entry.ai_family {
        case AF_INET where bytes.count >= 8: self.init(bytes: Array(bytes[4..<8]))
        case AF_INET6 where bytes.count >= 24: self.init(bytes: Array(bytes[8..<24]))
        default: return nil
        }
    }
}
