package import JobModel

/// A header field that the daemon adds to requests to one origin, so that jobs can use an account without its secret.
///
/// The secret is added where the request is sent; specs, results, errors, checkpoints and the log never contain it.
package struct HostCredential: Sendable, Equatable {
    /// A value that descriptions do not show.
    package struct Secret: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
        let value: String

        package init(_ value: String) { self.value = value }

        package var description: String { "***" }
        package var customMirror: Mirror { Mirror(self, children: [:]) }
    }

    let origin: RequestURL.Origin
    let header: String
    let secret: Secret
    /// The users whose jobs get the field; nil for all.
    let users: Set<UInt32>?

    /// Throws if the host (with an optional port), the header or the secret is not valid.
    ///
    /// Only https hides the secret and proves who gets it; `isInsecure` allows http instead.
    package init(
        host: String, header: String, secret: Secret, users: Set<UInt32>? = nil, isInsecure: Bool = false
    ) throws(JobError) {
        let origin = try RequestURL.origin(ofHost: host, scheme: isInsecure ? "http" : "https")
        guard HeaderField.isToken(header), !HeaderField.isReserved(header) else {
            throw JobError(.invalid, "\"\(header.echoed)\" cannot be the name of a credential's header field.")
        }
        guard !secret.value.isEmpty, secret.value.utf8.count <= 8192, HeaderField.flaw(ofValue: secret.value) == nil
        else {
            throw JobError(
                .invalid, "the credential must be one line of 1 to 8192 bytes without control characters.")
        }
        self.origin = origin
        self.header = header
        self.secret = secret
        self.users = users
    }

    /// Whether a request for `url` on behalf of `owner` gets the field.
    func applies(to url: RequestURL, of owner: UInt32) -> Bool {
        url.origin == origin && users?.contains(owner) ?? true
    }
}

extension RequestURL {
    /// The origin of a host with an optional port, as the configuration writes it.
    static func origin(ofHost host: String, scheme: String) throws(JobError) -> Origin {
        guard let url = RequestURL("\(scheme)://\(host)/"), url.target == "/", url.credentials == nil,
            !host.contains("/")
        else {
            throw JobError(
                .invalid, "\"\(host.echoed)\" is not a host; write a name or an address, with a port if it has one.")
        }
        return url.origin
    }
}
