import DeferredKit
import JobModel
import LoopTasks
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Opens connections to servers, after it has resolved their names and checked the addresses.
final class ServerConnector: Sendable {
    private let settings: HTTPSettings
    private let policy: AccessPolicy
    private let proxy: ProxyAddress?
    private let exceptions: ProxyExceptions
    private let pool: ConnectionPool
    private let shared: SharedServices
    /// The TLS settings by the index of the client's certificate; nil for none.
    private let contexts = Mutex<[Int?: NIOSSLContext]>([:])

    init(
        _ settings: HTTPSettings, _ policy: AccessPolicy, _ pool: ConnectionPool, _ shared: SharedServices
    ) throws(JobError) {
        self.settings = settings
        self.policy = policy
        self.pool = pool
        self.shared = shared
        if let text = settings.proxy { proxy = try ProxyAddress(text) } else { proxy = nil }
        exceptions = try ProxyExceptions(settings.noProxy)
    }

    func proxy(for url: RequestURL) -> ProxyAddress? {
        guard let proxy, !exceptions.include(url.host) else { return nil }
        return proxy
    }

    func connect(
        to url: RequestURL, _ key: ConnectionPool.Key, _ transfer: Transfer
    ) async throws(JobError) -> ServerConnection {
        let deadline = transfer.clock.now + .seconds(saturating: settings.connectTimeout)
        let addresses = try await addresses(of: url, transfer, deadline)
        let channel = try await open(addresses, url, transfer, deadline)
        do throws(JobError) {
            return try await setUp(channel, url, key, transfer, deadline)
        } catch {
            channel.close(promise: nil)
            throw error
        }
    }

    // MARK: - Addresses

    private static let mostAddresses = 16

    /// The allowed addresses of the server of `url`, or those of the proxy.
    private func addresses(
        of url: RequestURL, _ transfer: Transfer, _ deadline: NIODeadline
    ) async throws(JobError) -> [SocketAddress] {
        guard let proxy = proxy(for: url) else {
            let addresses = try await resolve(url.host, transfer, deadline)
            let allowed = addresses.filter { (try? policy.check($0)) != nil }
            if allowed.isEmpty, let address = addresses.last { try policy.check(address) }
            return allowed.prefix(Self.mostAddresses).compactMap { $0.socketAddress(port: url.port) }
        }
        // The proxy resolves the name itself, and may know names that are unknown or slow here.
        if case .name = url.host {
            let soon = transfer.clock.now + .seconds(saturating: settings.connectTimeout / 4)
            for address in (try? await resolve(url.host, transfer, soon)) ?? [] { try policy.check(address) }
            try transfer.control.check()
        }
        return try await resolve(proxy.host, transfer, deadline).compactMap { $0.socketAddress(port: proxy.port) }
    }

    private func resolve(
        _ host: RequestURL.Host, _ transfer: Transfer, _ deadline: NIODeadline
    ) async throws(JobError) -> [IPAddress] {
        switch host {
        case .address(let address): return [address]
        case .name(let name):
            let threads = shared.names.of(transfer.owner)
            let limit = TransferControl.Limit(deadline: deadline) {
                JobError(
                    .dns,
                    "The name \(name) could not be resolved in time; try again later, or raise http.connectTimeout.",
                    retryable: true)
            }
            return try await transfer.control.run(on: threads, limit: limit) { [shared] () throws(JobError) in
                try shared.lookup(name).mapError { failure in
                    JobError(
                        .dns, "The name \(name) could not be resolved (\(failure.reason)); check its spelling.",
                        retryable: true)
                }.get()
            }
        }
    }

    // MARK: - Connection

    private func open(
        _ addresses: [SocketAddress], _ url: RequestURL, _ transfer: Transfer, _ deadline: NIODeadline
    ) async throws(JobError) -> any Channel {
        guard !addresses.isEmpty else {
            throw JobError(.dns, "The name \(url.hostText) has no address; check its spelling.", retryable: true)
        }
        let limit = TransferControl.Limit(deadline: deadline) { JobError(connectTimeout: url) }
        return try await transfer.control.wait(limit: limit) { promise in
            ClientBootstrap(group: transfer.loop)
                .connectTimeout(.seconds(saturating: settings.connectTimeout))
                .resolver(KnownAddresses(addresses: addresses, loop: transfer.loop))
                .connect(host: url.hostText, port: url.port)
                .whenComplete { result in
                    let isAwaited = promise.resolve(result.mapError { JobError(transport: $0, to: url) })
                    if !isAwaited, case .success(let channel) = result { channel.close(promise: nil) }
                }
        }
    }

    /// Passes the proxy, establishes TLS, and makes the channel speak HTTP.
    private func setUp(
        _ channel: any Channel, _ url: RequestURL, _ key: ConnectionPool.Key, _ transfer: Transfer,
        _ deadline: NIODeadline
    ) async throws(JobError) -> ServerConnection {
        let connection = ServerConnection(on: channel, key, pool)
        let tls = url.scheme == "https" ? try await tlsContext(for: url, transfer.owner) : nil
        let late =
            tls == nil
            ? JobError(connectTimeout: url)
            : JobError(.tls, "\(url.hostAndPort) did not finish its TLS handshake in time; check the port.")
        let loop = channel.eventLoop
        /// Runs `add` with a promise that the added handler completes.
        @Sendable func step(_ add: (EventLoopPromise<Void>) throws -> Void) -> EventLoopFuture<Void> {
            let promise = loop.makePromise(of: Void.self)
            do { try add(promise) } catch { promise.fail(error) }
            // A handler that is added to a closed channel gets no event about it.
            if !channel.isActive { promise.fail(TransferError.closed) }
            return promise.futureResult
        }
        let limit = TransferControl.Limit(deadline: deadline) { late }
        try await transfer.control.wait(limit: limit) { promise in
            loop.flatSubmit { [proxy = proxy(for: url)] in
                guard let proxy, !proxy.forwards(url) else { return loop.makeSucceededVoidFuture() }
                return step { promise in
                    try channel.pipeline.syncOperations.addHandler(
                        ProxyHandler(ProxyHandshake(to: url, by: proxy), promise))
                }
            }
            .flatMap {
                guard let tls else { return loop.makeSucceededVoidFuture() }
                return step { promise in
                    var name: String?
                    if case .name(let host) = url.host { name = host }
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: name))
                    try pipeline.addHandler(HandshakeHandler(url.host, promise))
                }
            }
            .flatMapThrowing {
                let pipeline = channel.pipeline.syncOperations
                // NIO keeps as many buffers of a fast connection. With one of 256 KiB, the row `large` takes a third more CPU.
                try channel.syncOptions?.setOption(.maxMessagesPerRead, value: 4)
                try channel.syncOptions?.setOption(
                    .recvAllocator,
                    value: AdaptiveRecvByteBufferAllocator(
                        minimum: 2 << 10, initial: 2 << 10, maximum: ResponseStream.limit))
                try pipeline.addHandler(connection)
                guard channel.isActive else { throw TransferError.closed }
            }
            .whenComplete { promise.resolve($0.mapError { JobError(transport: $0, to: url) }) }
        }
        return connection
    }

    /// The TLS settings with the trusted certificates, which are read once, as that takes milliseconds.
    private func tlsContext(for url: RequestURL, _ owner: UInt32) async throws(JobError) -> NIOSSLContext {
        let index = settings.clientCertificates.firstIndex { $0.applies(to: url, of: owner) }
        if let context = contexts.withLock({ $0[index] }) { return context }
        do {
            let context = try await shared.ownFiles.run { [settings] () throws(any Error) in
                var configuration = TLSConfiguration.makeClientConfiguration()
                // `ServerIdentity` checks the name.
                configuration.certificateVerification = .noHostnameVerification
                configuration.minimumTLSVersion = .tlsv12
                if let path = settings.certificates { configuration.additionalTrustRoots = [.file(path)] }
                if let index { settings.clientCertificates[index].configure(&configuration) }
                configuration.applicationProtocols = ["http/1.1"]
                return try NIOSSLContext(configuration: configuration)
            }
            contexts.withLock { $0[index] = context }
            return context
        } catch {
            let file = settings.certificates.map { ", or correct \"\($0)\"" } ?? ""
            throw JobError(
                .tls,
                "The trusted certificates could not be read (\(JobError.reason(ofTLS: error))); install ca-certificates\(file)."
            )
        }
    }
}

/// Resolved addresses, which NIO tries one after the other (RFC 8305).
private struct KnownAddresses: Resolver, Sendable {
    let addresses: [SocketAddress]
    let loop: any EventLoop

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> { addresses(of: .inet) }
    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> { addresses(of: .inet6) }
    func cancelQueries() {}

    private func addresses(of family: NIOBSDSocket.ProtocolFamily) -> EventLoopFuture<[SocketAddress]> {
        loop.makeSucceededFuture(addresses.filter { $0.protocol == family })
    }
}

extension IPAddress {
    fileprivate func socketAddress(port: Int) -> SocketAddress? {
        try? SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: port)
    }
}
