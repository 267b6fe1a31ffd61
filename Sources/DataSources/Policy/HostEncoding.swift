import Foundation

/// International host names in the form that name servers know (`xn--`).
enum HostEncoding {
    /// The ASCII form of `host`, or nil where it has none.
    static func ascii(_ host: Substring) -> String? {
        // Anything that ends a host must not get past the one who looked for its end.
        guard !host.contains(where: { "/?#@:[]%\\ ".contains($0) }) else { return nil }
        return URL(string: "http://\(host)/")?.host
    }
}
