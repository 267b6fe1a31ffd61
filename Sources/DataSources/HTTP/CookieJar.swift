import JobModel

/// The cookies that servers set in a chain of redirects (RFC 6265); they end with it.
struct CookieJar: Sendable {
    private struct Cookie {
        let name: String
        let value: String
        let domain: String
        /// Whether it is only for this host, and not for the hosts below it.
        let isHostOnly: Bool
        let path: String
        let isSecure: Bool
    }

    /// The most cookies, and the most bytes of name and value of each.
    private static let (most, longest) = (50, 4096)

    /// The oldest first.
    private var cookies: [Cookie] = []

    /// Takes the values of `Set-Cookie` in a response from `url`.
    mutating func store(_ values: [String], from url: RequestURL, now: Timestamp = .now) {
        for value in values {
            guard let (cookie, isExpired) = Self.cookie(value, url, now) else { continue }
            cookies.removeAll { ($0.name, $0.domain, $0.path) == (cookie.name, cookie.domain, cookie.path) }
            if !isExpired { cookies.append(cookie) }
            if cookies.count > Self.most { cookies.removeFirst() }
        }
    }

    /// The value of `Cookie` in a request for `url`; nil if there is none.
    func header(for url: RequestURL) -> String? {
        let (host, path) = (url.hostText, Self.path(of: url))
        let fitting = cookies.filter { cookie in
            (cookie.domain == host || !cookie.isHostOnly && host.hasSuffix("." + cookie.domain))
                && Self.covers(cookie.path, path) && (!cookie.isSecure || url.scheme == "https")
        }
        // Servers may rely on the order: longer paths first, then older cookies.
        let ordered = fitting.enumerated().sorted {
            ($1.element.path.utf8.count, $0.offset) < ($0.element.path.utf8.count, $1.offset)
        }
        return ordered.isEmpty ? nil : ordered.map { "\($0.element.name)=\($0.element.value)" }.joined(separator: "; ")
    }

    private static func path(of url: RequestURL) -> String { String(url.target.prefix { $0 != "?" }) }

    /// Whether a cookie's path includes another one.
    private static func covers(_ path: String, _ other: String) -> Bool {
        other == path || other.hasPrefix(path.hasSuffix("/") ? path : path + "/")
    }

    /// Reads a value of `Set-Cookie`; nil if the server must not set this cookie.
    private static func cookie(
        _ text: String, _ url: RequestURL, _ now: Timestamp
    ) -> (cookie: Cookie, isExpired: Bool)? {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        let pair = parts[0].split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(\.trimmed)
        guard pair.count == 2, !pair[0].isEmpty, pair[0].utf8.count + pair[1].utf8.count <= longest,
            HeaderField.flaw(ofValue: text) == nil
        else { return nil }
        let target = path(of: url)
        var (domain, isHostOnly) = (url.hostText, true)
        var path = target.lastIndex(of: "/").map { $0 == target.startIndex ? "/" : String(target[..<$0]) } ?? "/"
        var (isSecure, expires, maxAge) = (false, Timestamp?.none, Double?.none)
        for part in parts.dropFirst() {
            let words = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(\.trimmed)
            let value = words.count > 1 ? words[1] : ""
            switch words[0].lowercased() {
            case "domain" where !value.isEmpty:
                let wanted = (value.hasPrefix(".") ? String(value.dropFirst()) : value).lowercased()
                if wanted == url.hostText {
                    if case .name = url.host { isHostOnly = false }
                    continue
                }
                // Not for a whole top-level domain, nor for addresses, which have no hosts below them.
                guard case .name = url.host, url.hostText.hasSuffix("." + wanted), wanted.contains(".") else {
                    return nil
                }
                (domain, isHostOnly) = (wanted, false)
            case "path" where value.hasPrefix("/"): path = value
            case "secure": isSecure = true
            // Some servers write whole years with hyphens.
            case "expires": expires = HTTPDate.time(value) ?? HTTPDate.time(value.replacing("-", with: " "))
            case "max-age": maxAge = Double(value)
            default: break
            }
        }
        let cookie = Cookie(
            name: pair[0], value: pair[1], domain: domain, isHostOnly: isHostOnly, path: path, isSecure: isSecure)
        return (cookie, maxAge.map { $0 <= 0 } ?? expires.map { $0 <= now } ?? false)
    }
}
