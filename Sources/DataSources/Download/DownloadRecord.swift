import JobModel

/// The last finished download to a path: its result, and which file it wrote.
struct DownloadRecord: Sendable, Hashable {
    var job: JobID
    var link: Int
    /// The owner of the job; other users do not see the record.
    var owner: UInt32?
    /// The URL as the spec has it, without credentials.
    var url: String
    var result: JSON
    var file: FileOperations.Status.Identity
    var modifiedAt: Int64

    var json: JSON {
        [
            "job": JSON(Int(job)), "link": JSON(link), "owner": owner.map { JSON(Int($0)) } ?? .null,
            "url": .string(url), "result": result, "file": file.json,
            "modifiedAt": .string(String(modifiedAt)),
        ]
    }
}

extension DownloadRecord {
    /// Reads ``json``; nil for any other form, which counts as no record.
    init?(_ json: JSON?) {
        guard let json, let job = json["job"]?.int, let link = json["link"]?.int, let url = json["url"]?.string,
            let result = json["result"], let file = json["file"].flatMap(FileOperations.Status.Identity.init(json:)),
            let modifiedAt = json["modifiedAt"]?.string.flatMap(Int64.init)
        else { return nil }
        self.init(
            job: JobID(job), link: link, owner: json["owner"]?.int.flatMap(UInt32.init(exactly:)), url: url,
            result: result, file: file, modifiedAt: modifiedAt)
    }

    /// Whether the file with this status is the downloaded one, unchanged.
    func isAbout(_ status: FileOperations.Status) -> Bool {
        status.identity == file && status.size == size && status.modifiedAt == modifiedAt
    }

    var size: Int64 { Int64(result["size"]?.int ?? -1) }
    var etag: String? { result["etag"]?.string }
    var lastModified: String? { result["lastModified"]?.string }
    var sha256: String? { result["sha256"]?.string }
}
