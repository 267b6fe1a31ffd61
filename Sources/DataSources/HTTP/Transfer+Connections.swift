import DeferredKit
import JobModel
import LoopTasks
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Connections to servers, or through a proxy, after their names are resolved and the addresses checked.
extension Transfer {
    /// Connects to the server of `url`, and establishes TLS for `https`.
    func connect(to url: RequestURL, _ key: ConnectionPool.Key) async throws(JobError) -> ServerConnection {
        let deadline = clock.now + .seconds(saturating: settings.http.connectTimeout)
        let addresses = try await addresses(of: url, deadline)
        guard !addresses.isEmpty else {
            throw JobError(.dns, "The name \(url.hostText) has no address; check its spelling.", retryable: true)
        }
        let tls = url.scheme == "https" ? try await tlsContext(key.certificate) : nil
        let limit = TransferControl.Limit(deadline: deadline) { [rules] in
            JobError(connectTimeout: url, through: rules.proxy(for: url))
        }
        let connection: ServerConnection = try await control.wait(limit: limit) { promise in
            bootstrap(for: url, key, tls)
                .resolver(KnownAddresses(addresses: addresses, loop: loop))
                .connect(host: url.hostText, port: url.port)
                .flatMapThrowing { try $0.pipeline.syncOperations.handler(type: ServerConnection.self) }
                .whenComplete { result in
                    let isAwaited = promise.resolve(result.mapError { JobError(transport: $0, to: url) })
                    if !isAwaited, case .success(let connection) = result { connection.channel.close(promise: nil) }
                }
        }
        do throws(JobError) {
            try await control.wait(limit: limit) { promise in
                connection.readiness.deferred.upon { readiness in
                    promise.resolve(readiness.get().mapError { JobError(transport: $0, to: url) })
                }
            }
            return connection
        } catch {
            connection.channel.close(promise: nil)
            throw error
        }
    }

    /// Makes channels that pass the proxy, speak TLS, and end in a ``ServerConnection``.
    private func bootstrap(
        for url: RequestURL, _ key: ConnectionPool.Key, _ tls: NIOSSLContext?
    ) -> ClientBootstrap {
        let proxy = rules.proxy(for: url).flatMap { $0.forwards(url) ? nil : $0 }
        return ClientBootstrap(group: loop)
            // `connection` waits less long for it; its own error names the proxy.
            .connectTimeout(.seconds(saturating: settings.http.connectTimeout + 1))
            // NIO keeps as many buffers of a fast connection. With one of 256 KiB, the row `large` takes a third more CPU.
            .channelOption(.maxMessagesPerRead, value: 4)
            .channelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(minimum: 2 << 10, initial: 2 << 10, maximum: Exchange.limit)
            )
            .channelInitializer { [pool = rules.pool] channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if let proxy { try pipeline.addHandler(ProxyHandler(ProxyHandshake(to: url, by: proxy))) }
                    if let tls {
                        var name: String?
                        if case .name(let host) = url.host { name = host }
                        try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: name))
                    }
                    try pipeline.addHandler(ServerConnection(on: channel, key, pool))
                }
            }
    }

    // MARK: - Addresses

    private static let mostAddresses = 16

    /// The allowed addresses of the server of `url`, or those of the proxy.
    private func addresses(of url: RequestURL, _ deadline: NIODeadline) async throws(JobError) -> [SocketAddress] {
        let policy = rules.access
        guard let proxy = rules.proxy(for: url) else {
            let addresses = try await resolve(url.host, deadline)
            let allowed = addresses.filter { (try? policy.check($0)) != nil }
            if allowed.isEmpty, let address = addresses.last { try policy.check(address) }
            return allowed.prefix(Self.mostAddresses).compactMap { $0.socketAddress(port: url.port) }
        }
        // The proxy resolves the name itself, and may know names that are unknown or slow here.
        if case .name = url.host {
            let soon = clock.now + .seconds(saturating: settings.http.connectTimeout / 4)
            for address in (try? await resolve(url.host, soon)) ?? [] { try policy.check(address) }
            try control.check()
        }
        return try await resolve(proxy.host, deadline).compactMap { $0.socketAddress(port: proxy.port) }
    }

    private func resolve(_ host: RequestURL.Host, _ deadline: NIODeadline) async throws(JobError) -> [IPAddress] {
        switch host {
        case .address(let address): return [address]
        case .name(let name):
            let threads = shared.names.of(owner)
            let limit = TransferControl.Limit(deadline: deadline) {
                JobError(
                    .dns,
                    "The name \(name) could not be resolved in time; try again later, or raise http.connectTimeout.",
                    retryable: true)
            }
            return try await control.run(on: threads, limit: limit) { [shared] () throws(JobError) in
                try shared.lookup(name).mapError { failure in
                    JobError(
                        .dns, "The name \(name) could not be resolved (\(failure.reason)); check its spelling.",
                        retryable: true)
                }.get()
            }
        }
    }

    /// The TLS settings with the trusted certificates, which are read once, as that takes milliseconds.
    private func tlsContext(_ index: Int?) async throws(JobError) -> NIOSSLContext {
        let settings = settings.http
        if let context = rules.tlsContexts.withLock({ $0[index] }) { return context }
        do {
            let context = try await ownFiles.run { () throws(any Error) in
                var configuration = TLSConfiguration.makeClientConfiguration()
                // `ServerIdentity` checks the name.
                configuration.certificateVerification = .noHostnameVerification
                configuration.minimumTLSVersion = .tlsv12
                if let path = settings.certificates { configuration.additionalTrustRoots = [.file(path)] }
                if let index { settings.clientCertificates[index].configure(&configuration) }
                configuration.applicationProtocols = ["http/1.1"]
                // Otherwise a closed connection receives until its server has ended TLS too, for up to 5 seconds.
                configuration.shutdownTimeout = .zero
                return try NIOSSLContext(configuration: configuration)
            }
            rules.tlsContexts.withLock { $0[index] = context }
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
