import JobModel

extension JSON {
    /// A source of `type` for `url`, with `more` members.
    static func source(_ type: String, _ url: String, _ more: [String: JSON] = [:]) -> JSON {
        var members = JSONObject()
        members["type"] = .string(type)
        members["url"] = .string(url)
        for (name, value) in more.sorted(by: { $0.key < $1.key }) { members[name] = value }
        return .object(members)
    }

    /// A download of `url` to `path`.
    static func download(_ url: String, to path: String, _ more: [String: JSON] = [:]) -> JSON {
        source("download", url, more.merging(["path": .string(path)]) { own, _ in own })
    }
}
