import JobModel
import NIOHTTP1

/// What tells two versions of a file apart byte by byte, so that a transfer may be taken up again.
enum Validator: Sendable, Hashable {
    /// A strong entity tag, quotes included.
    case tag(String)
    /// `Last-Modified`, as the server wrote it.
    case modified(String)

    /// The strong validator of a response; nil where it has none.
    ///
    /// A weak tag says that files with it may differ, so then the date, which is coarser, counts for nothing either. Nor
    /// does a date of the very second of the response: the file may be changed once more within it.
    init?(_ headers: HTTPHeaders) {
        if let tag = headers.first(name: "ETag") {
            guard tag.hasPrefix("\""), tag.hasSuffix("\""), tag.utf8.count > 1 else { return nil }
            self = .tag(tag)
            return
        }
        guard let text = headers.first(name: "Last-Modified"), let modified = HTTPDate.time(text) else { return nil }
        if let date = headers.first(name: "Date").flatMap(HTTPDate.time), date.seconds(since: modified) < 1 {
            return nil
        }
        self = .modified(text)
    }

    /// The validator that a checkpoint or a record has in its members; nil where it has none.
    init?(_ json: JSON) {
        if let tag = json["etag"]?.string {
            self = .tag(tag)
        } else if let date = json["lastModified"]?.string {
            self = .modified(date)
        } else {
            return nil
        }
    }

    /// How it is written into a checkpoint.
    var member: JSONObject.Member {
        switch self {
        case .tag(let tag): JSONObject.Member(name: "etag", value: .string(tag))
        case .modified(let date): JSONObject.Member(name: "lastModified", value: .string(date))
        }
    }

    /// The value of `If-Range`.
    var text: String {
        switch self {
        case .tag(let text), .modified(let text): text
        }
    }

    /// Whether a partial response is of this version. It must repeat a tag, but need not repeat a date.
    func fits(_ headers: HTTPHeaders) -> Bool {
        switch self {
        case .tag(let tag): headers.first(name: "ETag") == tag
        case .modified(let date): headers.first(name: "Last-Modified").map { $0 == date } ?? true
        }
    }
}
