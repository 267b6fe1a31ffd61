/// Scripts for the ways in which servers and networks fail.
package enum Misbehaviour {
    /// Where to cut a connection.
    package enum Place: String, Sendable, CaseIterable {
        case header
        case firstByte
        case middle
        case lastByte
    }

    /// The header fields of a whole `body`.
    private static func fields(_ body: [UInt8], etag: String?) -> [(name: String, value: String)] {
        [("Content-Length", "\(body.count)"), ("Accept-Ranges", "bytes")] + (etag.map { [("ETag", $0)] } ?? [])
    }

    /// The correct answer, including ranges.
    package static func correct(
        _ body: [UInt8], etag: String? = nil, to request: OriginLog.Entry
    ) -> [OriginStep] {
        guard let (start, last) = request.range, start < body.count, request.headers["if-range"] ?? etag == etag
        else { return [.head("200 OK", fields(body, etag: etag)), .send(body)] }
        let rest = Array(body[start...min(last, body.count - 1)])
        return [
            .head(
                "206 Partial Content",
                fields(rest, etag: etag) + [("Content-Range", "bytes \(start)-\(start + rest.count - 1)/\(body.count)")]
            ),
            .send(rest),
        ]
    }

    /// Cuts the first `times` connections for a path at `place`; then all is well.
    package static func cut(
        _ body: [UInt8], at place: Place, times: Int = .max, etag: String? = nil, resetting: Bool = false
    ) -> ScriptedOrigin.Script {
        { request, count in
            guard count < times else { return correct(body, etag: etag, to: request) }
            let end: OriginStep = resetting ? .reset : .close
            let head = OriginStep.head("200 OK", fields(body, etag: etag))
            switch place {
            case .header: return [.send("HTTP/1.1 200 OK\r\nContent-Le"), end]
            case .firstByte: return [head, end]
            case .middle: return [head, .send(Array(body[..<(body.count / 2)])), end]
            case .lastByte: return [head, .send(Array(body.dropLast())), end]
            }
        }
    }

    /// Cuts the first connection in the middle, and has `second`, of the same size, from then on.
    package static func changes(_ first: [UInt8], to second: [UInt8], etags: (String, String)) -> ScriptedOrigin.Script
    {
        { request, count in
            count == 0
                ? [.head("200 OK", fields(first, etag: etags.0)), .send(Array(first[..<(first.count / 2)])), .close]
                : correct(second, etag: etags.1, to: request)
        }
    }

    /// Answers with `status` and `Retry-After`.
    package static func busy(_ status: String, retryAfter: String) -> ScriptedOrigin.Script {
        { _, _ in [.head(status, [("Retry-After", retryAfter), ("Content-Length", "0")])] }
    }

    /// Redirects to one new path after the other, without end.
    package static var redirectsForever: ScriptedOrigin.Script {
        { request, _ in
            [.head("302 Found", [("Location", request.path + "x"), ("Content-Length", "0")])]
        }
    }
}
