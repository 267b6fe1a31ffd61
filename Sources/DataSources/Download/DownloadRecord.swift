import JobModel

/// The last finished download to a path: its result, and which file it wrote.
struct DownloadRecord: Sendable {
    let json: JSON

    init(json: JSON) { self.json = json }

    /// `url` is that of the spec, without credentials.
    init(_ result: JSONObject, of context: SourceContext, from url: String, in file: FileOperations.Status) {
        json = [
            "job": JSON(Int(context.job)), "link": JSON(context.link), "owner": JSON(Int(context.owner)),
            "url": .string(url), "result": .object(result), "file": file.identity.json,
            "modifiedAt": .string(String(file.modifiedAt)),
            "linkStartedAt": context.linkStartedAt.map { JSON(Int($0.milliseconds)) } ?? .null,
        ]
    }

    /// Whether the file with this status is the downloaded one, unchanged.
    func isAbout(_ status: FileOperations.Status) -> Bool {
        json["file"] == status.identity.json && json["modifiedAt"] == .string(String(status.modifiedAt))
            && result["size"]?.int == Int(status.size)
    }

    /// Other users do not see the record.
    func isOf(_ owner: UInt32) -> Bool { json["owner"]?.int == Int(owner) }

    /// Whether another attempt at the same link wrote the file, and not one before a retry by hand.
    func isOfLink(in context: SourceContext) -> Bool {
        guard let startedAt = context.linkStartedAt else { return false }
        return json["job"]?.int == Int(context.job) && json["link"]?.int == context.link
            && json["linkStartedAt"]?.int == Int(startedAt.milliseconds)
    }

    var url: String? { json["url"]?.string }
    var result: JSON { json["result"] ?? .null }
    var etag: String? { result["etag"]?.string }
    var lastModified: String? { result["lastModified"]?.string }
    var sha256: String? { result["sha256"]?.string }
}
