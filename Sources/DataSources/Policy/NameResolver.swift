import DeferredKit
import Glibc
import JobModel
import NIOCore
import SystemPackage

/// Resolves names on threads of its own, as the system's resolver can block for minutes and cannot be told to stop.
///
/// A user occupies at most ``perUser`` threads, and users take turns. A caller can give up at any time; a lookup whose caller
/// has given up is not started.
package final class NameResolver: Sendable {
    /// The system's resolver, which blocks.
    package typealias Lookup = @Sendable (_ name: String) -> Result<[IPAddress], Failure>

    /// Why a name has no address, in the resolver's words.
    package struct Failure: Error {
        let reason: String

        package init(reason: String) {
            self.reason = reason
        }
    }

    /// Lookups of one user, and of all, at a time.
    static let perUser = 4
    static let total = 16

    private let queue = FileQueue(threads: total, perUser: perUser)
    private let lookup: Lookup

    init(lookup: @escaping Lookup) {
        self.lookup = lookup
    }

    /// The addresses of `name`, at least one; no later than the transfer is interrupted or cancelled, or `limit` passes.
    func addresses(
        of name: String, for user: UInt32, _ control: TransferControl, limit: TransferControl.Limit?
    ) async throws(JobError) -> [IPAddress] {
        try await control.wait(limit: limit) { promise in
            queue.of(user).start { [lookup] in
                guard !promise.deferred.isResolved else { return }
                promise.resolve(
                    lookup(name).mapError { failure in
                        JobError(
                            .dns, "The name \(name) could not be resolved (\(failure.reason)); check its spelling.",
                            retryable: true)
                    })
            }
        }
    }

    /// Ends the threads, without waiting for those that a lookup holds up.
    func end() { queue.end() }
}

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
