import DeferredKit
import Glibc
import JobModel
import NIOCore
import SystemPackage

/// Resolves names on its own threads, as the system's resolver can block for minutes and cannot be stopped.
///
/// Users take turns and use at most ``perUser`` threads each. A lookup does not start if its caller has given up.
package final class NameResolver: Sendable {
    /// A resolver, which blocks.
    package typealias Lookup = @Sendable (_ name: String) -> Result<[IPAddress], Failure>

    /// The reason why a name has no address.
    package struct Failure: Error {
        let reason: String

        package init(reason: String) {
            self.reason = reason
        }
    }

    /// The most lookups at a time for one user, and for all.
    static let perUser = 4
    static let total = 16

    private let queue = FileQueue(threads: total, perUser: perUser)
    private let lookup: Lookup

    init(lookup: @escaping Lookup) {
        self.lookup = lookup
    }

    /// Finds the addresses of `name`; throws if the transfer is stopped or `limit` passes.
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

    /// Ends the threads without waiting for lookups.
    func end() { queue.end() }
}

extension NameResolver {
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
            if let address = IPAddress(info.pointee), !addresses.contains(address) {
                addresses.append(address)
            }
            entry = info.pointee.ai_next
        }
        return addresses.isEmpty ? .failure(Failure(reason: "it has no address")) : .success(addresses)
    }
}

extension IPAddress {
    /// The address of an entry, or nil for another family.
    ///
    /// Read from the output of getnameinfo(3): in a build of the whole module, the compiler takes members of
    /// `sockaddr_in` for those of NIO's own module, which cannot be imported.
    fileprivate init?(_ entry: addrinfo) {
        var text = [UInt8](repeating: 0, count: 128)
        let result = text.withUnsafeMutableBytes { text in
            text.withMemoryRebound(to: CChar.self) { text in
                getnameinfo(
                    entry.ai_addr, entry.ai_addrlen, text.baseAddress, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
            }
        }
        guard result == 0 else { return nil }
        // A zone ("%eth0") only names the interface.
        self.init(String(decoding: text.prefix { $0 != 0 && $0 != UInt8(ascii: "%") }, as: UTF8.self))
    }
}
