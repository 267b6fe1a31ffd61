package import JobModel
import NIOSSL

/// A certificate that the daemon shows to one host, so that jobs can use an account without its key.
package struct ClientCertificate: Sendable, Equatable {
    private let origin: RequestURL.Origin
    /// The users whose jobs show it; nil for all.
    private let users: Set<UInt32>?
    private let chain: [NIOSSLCertificate]
    private let key: NIOSSLPrivateKey

    /// Reads the certificate with those above it, and its key, from PEM files. Throws if they cannot be used together,
    /// or if the host (with an optional port) is not valid.
    package init(host: String, certificate: String, key: String, users: Set<UInt32>? = nil) throws(JobError) {
        origin = try RequestURL.origin(ofHost: host, scheme: "https")
        self.users = users
        chain = try Self.certificates(certificate)
        do {
            self.key = try NIOSSLPrivateKey(file: key, format: .pem)
        } catch {
            let reason = JobError.reason(ofTLS: error)
            throw JobError(.invalid, "\"\(key)\" is not the PEM file of a key, or cannot be read (\(reason)).")
        }
        do {
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.trustRoots = .certificates([])
            configure(&configuration)
            _ = try NIOSSLContext(configuration: configuration)
        } catch {
            throw JobError(.invalid, "The key in \"\(key)\" is not that of the certificate in \"\(certificate)\".")
        }
    }

    /// The certificates of a PEM file; throws if it has none, or cannot be read.
    private static func certificates(_ path: String) throws(JobError) -> [NIOSSLCertificate] {
        do { return try NIOSSLCertificate.fromPEMFile(path) } catch {
            let reason = JobError.reason(ofTLS: error)
            throw JobError(.invalid, "\"\(path)\" is not a PEM file of certificates, or cannot be read (\(reason)).")
        }
    }

    /// Throws if a PEM file of authorities has no certificates, or cannot be read.
    package static func check(authorities path: String) throws(JobError) { _ = try certificates(path) }

    /// Whether a connection for `url` on behalf of `owner` shows it.
    func applies(to url: RequestURL, of owner: UInt32) -> Bool {
        url.origin == origin && users?.contains(owner) ?? true
    }

    func configure(_ configuration: inout TLSConfiguration) {
        configuration.certificateChain = chain.map { .certificate($0) }
        configuration.privateKey = .privateKey(key)
    }
}
