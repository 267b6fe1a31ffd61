import JobModel

/// The configured proxy.
struct ProxyAddress: Sendable {
    enum Kind: Sendable {
        case http
        case socks
    }

    let kind: Kind
    let host: RequestURL.Host
    let port: Int
    /// `user:password`, for an HTTP proxy only.
    let credentials: String?

    init(_ text: String) throws(JobError) {
        let isSocks = text.lowercased().hasPrefix("socks5://")
        guard let url = RequestURL(text), isSocks || url.scheme == "http", url.target == "/",
            !isSocks || url.credentials == nil
        else {
            throw JobError(
                .invalid,
                "\(SourceMessage.quoted(text)) in http.proxy is not a proxy; write http://host:port or socks5://host:port."
            )
        }
        kind = isSocks ? .socks : .http
        host = url.host
        // `RequestURL` gives URLs of other schemes the port of http.
        port = isSocks && url.port == 80 ? 1080 : url.port
        credentials = url.credentials
    }
}
