import JobModel

/// The proxy that the configuration names.
struct ProxyAddress: Sendable {
    enum Kind: Sendable {
        case http
        case socks
    }

    let kind: Kind
    let host: RequestURL.Host
    let port: Int
    /// `user:password`, of an HTTP proxy only.
    let credentials: String?

    init(_ text: String) throws(JobError) {
        let isSocks = text.lowercased().hasPrefix("socks5://")
        guard let url = RequestURL(text), isSocks || url.scheme == "http", url.target == "/",
            !isSocks || url.credentials == nil
        else {
            throw JobError(
                .invalid,
                "\(SourceMessage.quoted(text)) in http.proxy is no proxy; write http://host:port or socks5://host:port."
            )
        }
        kind = isSocks ? .socks : .http
        host = url.host
        // A URL without a port has that of its scheme, which is known for http and https only.
        port = isSocks && url.port == 80 ? 1080 : url.port
        credentials = url.credentials
    }
}
