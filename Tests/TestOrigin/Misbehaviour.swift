/// Scripts for the ways in which servers and networks fail.
package enum Misbehaviour {
    /// The correct answer, including ranges.
    package static func correct(
        _ body: [UInt8], etag: String? = nil, to request: OriginLog.Entry
    ) -> [OriginStep] {
        OriginResource(body, etag: etag).answer(to: request)
    }

    /// Cuts the first `times` connections for a path in the middle of the body; then all is well.
    package static func cut(
        _ body: [UInt8], times: Int = .max, etag: String? = nil, resetting: Bool = false
    ) -> ScriptedOrigin.Script {
        { request, count in
            guard count < times else { return correct(body, etag: etag, to: request) }
            let fields = [("Content-Length", "\(body.count)")] + (etag.map { [("ETag", $0)] } ?? [])
            return [.head("200 OK", fields), .send(Array(body[..<(body.count / 2)])), resetting ? .reset : .close]
        }
    }

    /// Cuts the first connection in the middle, and has `second`, of the same size, from then on.
    package static func changes(_ first: [UInt8], to second: [UInt8], etags: (String, String)) -> ScriptedOrigin.Script
    {
        { request, count in
            count == 0
                ? cut(first, etag: etags.0)(request, count) : correct(second, etag: etags.1, to: request)
        }
    }
}
