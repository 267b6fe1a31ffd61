import AsyncHTTPClient
import JobModel

/// The proxy that the configuration names.
struct ProxyAddress: Sendable {
    let configuration: HTTPClient.Configuration.Proxy

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
        if isSocks {
            // A URL without a port has that of its scheme, which is known for http and https only.
            configuration = .socksServer(host: url.bareHost, port: url.port == 80 ? 1080 : url.port)
        } else {
            let parts = url.credentials?.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let authorization = parts.map { parts in
                HTTPClient.Authorization.basic(username: String(parts[0]), password: String(parts.last ?? ""))
            }
            configuration = .server(host: url.bareHost, port: url.port, authorization: authorization)
        }
    }
}
