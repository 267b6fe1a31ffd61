@testable import DataSources
import Foundation
import JobModel
import NIOCore
import NIOPosix
import NIOSSL
import TestOrigin
import TestSupport
import Testing

/// What becomes of servers whose certificates are not as they should be.
@Suite struct CertificateTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var certificate = Certificates.loopback
        var host = "127.0.0.1"
        var asksForCertificate = false
        /// The path of the authorities that are trusted too, from that of the server's.
        var authorities: @Sendable (String) -> String? = { $0 }
        /// What the message says, in part; nil for a server that is trusted.
        var complaint: String?
    }

    static let cases = [
        Case(testDescription: "good"),
        Case(testDescription: "expired", certificate: Certificates.expired, complaint: "has expired"),
        Case(testDescription: "self-signed", certificate: Certificates.selfSigned, complaint: "is self-signed"),
        Case(testDescription: "wrong name", certificate: Certificates.otherName, complaint: "is for another name"),
        // Whoever answers for a name could have a certificate for the address that they lead it to.
        Case(testDescription: "address", host: "localhost", complaint: "is for another name"),
        Case(testDescription: "name", certificate: Certificates.otherName, host: "other.example"),
        Case(testDescription: "spelled name", certificate: Certificates.otherName, host: "OTHER.example."),
        Case(
            testDescription: "name below", certificate: Certificates.otherName, host: "x.other.example",
            complaint: "is for another name"),
        Case(testDescription: "unknown authority", authorities: { _ in nil }, complaint: "authority"),
        Case(testDescription: "no authorities", authorities: { _ in "/none.pem" }, complaint: "/none.pem"),
        Case(testDescription: "for clients", asksForCertificate: true, complaint: "http.clientCertificates"),
    ]

    @Test(arguments: cases) func server_isTrusted_onlyWithACertificateOfItsOwn(_ trial: Case) async throws {
        let names = Workbench.Names(lookup: { _ in .success([IPAddress(bytes: [127, 0, 0, 1])]) })
        try await serve(trial.certificate, asksForCertificate: trial.asksForCertificate) { port, authority in
            try await Workbench.run(names: names) {
                $0.http.certificates = trial.authorities(authority)
            } _: { bench in
                let source: JSON = ["type": "url", "url": .string("https://\(trial.host):\(port)/")]
                guard let complaint = trial.complaint else {
                    #expect(try await bench.result(source)["body"] == "ok")
                    return
                }
                let error = try await bench.failure(source)
                #expect(error.kind == .tls && !error.isRetryable)
                #expect(error.message.contains(complaint), "\(error)")
            }
        }
    }

    @Test(arguments: [
        ("a.example", "a.example", true), ("A.Example.", "a.example", true), ("b.example", "a.example", false),
        ("*.example.org", "a.example.org", true), ("*.example.org", "example.org", false),
        ("*.example.org", "a.b.example.org", false), ("*.org", "example.org", false), ("*", "localhost", false),
        ("a*.example.org", "ab.example.org", false), ("*a.example.org", "ba.example.org", false),
        ("*.*.org", "a.b.org", false), ("a.example\0", "a.example", false), ("", "", false),
    ])
    func nameOfACertificate_standsFor(name: String, host: String, isFor: Bool) {
        #expect(ServerIdentity.matches(Array(name.utf8), host) == isFor)
    }

    @Test func certificate_isShown_toItsHost_forItsUsers() async throws {
        let directory = try TemporaryDirectory()
        let certificate = try directory.write(Certificates.loopback, to: "certificate.pem")
        let key = try directory.write(Certificates.key, to: "key.pem")
        try await serve(Certificates.loopback, asksForCertificate: true) { port, authority in
            try await Workbench.run {
                $0.http.certificates = authority
                $0.http.clientCertificates =
                    (try? [
                        ClientCertificate(host: "127.0.0.1", certificate: certificate, key: key),
                        ClientCertificate(
                            host: "127.0.0.1:\(port)", certificate: certificate, key: key, users: [1000]),
                    ]) ?? []
            } _: { bench in
                let source: JSON = ["type": "url", "url": .string("https://127.0.0.1:\(port)/")]
                #expect(try await bench.result(source, owner: 1000)["body"] == "ok")
                _ = try await bench.failure(source, owner: 1001)
            }
        }
    }

    /// Else any server could use the account.
    @Test func certificate_isNotShown_afterARedirectFromAnotherOrigin() async throws {
        let directory = try TemporaryDirectory()
        let certificate = try directory.write(Certificates.loopback, to: "certificate.pem")
        let key = try directory.write(Certificates.key, to: "key.pem")
        try await serve(Certificates.loopback, asksForCertificate: true) { port, authority in
            try await Workbench.run(serving: ["/a": .redirect(302, to: "https://127.0.0.1:\(port)/")]) {
                $0.http.certificates = authority
                $0.http.clientCertificates =
                    (try? [ClientCertificate(host: "127.0.0.1:\(port)", certificate: certificate, key: key)]) ?? []
            } _: { origin, bench in
                // Its connection stays open.
                let source: JSON = ["type": "url", "url": .string("https://127.0.0.1:\(port)/")]
                #expect(try await bench.result(source)["body"] == "ok")
                _ = try await bench.failure(["type": "url", "url": .string(origin.url("/a"))])
            }
        }
    }

    @Test func certificate_isRefused_whenItCannotBeUsed() throws {
        let directory = try TemporaryDirectory()
        let certificate = try directory.write(Certificates.loopback, to: "certificate.pem")
        let other = try directory.write(Certificates.authority, to: "other.pem")
        let key = try directory.write(Certificates.key, to: "key.pem")
        for (host, certificate, key, reason) in [
            ("a/b", certificate, key, "is not a host"), ("a.example", key, key, "key.pem\" is not a PEM file"),
            ("a.example", certificate, certificate, "is not the PEM file of a key"),
            ("a.example", other, key, "is not that of the certificate"), ("a.example", "/none", key, "\"/none\""),
        ] {
            let error = #expect(throws: JobError.self) {
                try ClientCertificate(host: host, certificate: certificate, key: key)
            }
            #expect(error?.message.contains(reason) == true, "\(String(describing: error))")
        }
    }

    /// Who can cut a connection could else cut the body: the end of one without a length is what the server says in
    /// TLS.
    @Test(arguments: [false, true]) func bodyWithoutALength_isWhole_onlyWhereTheServerEndsTLS(isCut: Bool) async throws
    {
        let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok"
        try await serve(Certificates.loopback, answer, isCut ? .connection : .tls) { port, authority in
            try await Workbench.run {
                $0.http.certificates = authority
            } _: { bench in
                let url = JSON.string("https://127.0.0.1:\(port)/")
                let trials: [(source: JSON, member: String, value: JSON)] = [
                    (["type": "url", "url": url], "body", "ok"),
                    (["type": "download", "url": url, "path": "x"], "size", 2),
                ]
                for (source, member, value) in trials {
                    guard isCut else {
                        #expect(try await bench.result(source)[member] == value)
                        continue
                    }
                    let error = try await bench.failure(source)
                    #expect(error.kind == .network && error.isRetryable, "\(error)")
                    #expect(!bench.names(below: bench.downloads).contains("x"))
                }
            }
        }
    }

    /// A server that only sends does not answer in TLS that the connection is to end.
    @Test func connection_isClosed_whileItsServerReadsNothing() async throws {
        let (silences, silent) = AsyncStream.makeStream(of: Void.self)
        try await serve(Certificates.loopback, "", .reading(silent)) { port, authority in
            try await Workbench.run {
                $0.http.certificates = authority
            } _: { bench in
                let loop = MultiThreadedEventLoopGroup.singleton.next()
                let transfer = Transfer(
                    bench.context(1), bench.library.rules, bench.library.shared, loop: loop, report: { _ in })
                let url = try #require(RequestURL("https://127.0.0.1:\(port)/"))
                let key = ConnectionPool.Key(loop: ObjectIdentifier(loop), origin: url.origin, owner: 1000)
                let channel = try await transfer.connect(to: url, key).channel
                try await channel.writeAndFlush(ByteBuffer(string: "x"))
                for await _ in silences { break }
                // The loop runs tasks in the order of their times.
                let isClosed = try await loop.flatSubmit {
                    let end = loop.makePromise(of: Bool.self)
                    channel.close(promise: nil)
                    channel.closeFuture.whenComplete { _ in end.succeed(true) }
                    loop.scheduleTask(in: .seconds(3)) { end.succeed(false) }
                    return end.futureResult
                }.get()
                #expect(isClosed)
            }
        }
    }

    /// What a server ends after its answer.
    private enum End: Sendable {
        case nothing
        case tls
        /// Without a word in TLS.
        case connection
        /// Its reading, which it tells.
        case reading(AsyncStream<Void>.Continuation)
    }

    /// Runs `body` with the port of a server that has `certificate`, and the path of a file with the authority of the
    /// others.
    private func serve(
        _ certificate: String, _ answer: String = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        _ end: End = .nothing, asksForCertificate: Bool = false,
        _ body: (_ port: Int, _ authority: String) async throws -> Void
    ) async throws {
        let path = FileManager.default.temporaryDirectory.path + "/authority-\(UUID().uuidString).pem"
        try Data(Certificates.authority.utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(try NIOSSLCertificate(bytes: Array(certificate.utf8), format: .pem))],
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(Certificates.key.utf8), format: .pem)))
        if asksForCertificate {
            configuration.certificateVerification = .noHostnameVerification
            configuration.trustRoots = .file(path)
        }
        let context = try NIOSSLContext(configuration: configuration)
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers(
                        NIOSSLServerHandler(context: context), AnswerHandler(answer, end))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body(server.localAddress?.port ?? 0, path))
        } catch {
            outcome = .failure(error)
        }
        try await server.close()
        try outcome.get()
    }

    /// Answers whatever comes.
    private final class AnswerHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let answer: String
        private let end: End

        init(_ answer: String, _ end: End) {
            self.answer = answer
            self.end = end
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let written = context.eventLoop.makePromise(of: Void.self)
            let channel = context.channel
            written.futureResult.assumeIsolated().whenSuccess { [end] in
                switch end {
                case .nothing: break
                case .reading(let ended): channel.setOption(.autoRead, value: false).whenComplete { _ in ended.yield() }
                case .tls: channel.close(promise: nil)
                case .connection:
                    // From there on towards the socket, past TLS itself.
                    let tls = try? channel.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
                    tls?.close(promise: nil)
                }
            }
            context.writeAndFlush(NIOAny(ByteBuffer(string: answer)), promise: written)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }
}
