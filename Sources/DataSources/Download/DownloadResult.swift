import JobModel

/// The result of the source `download`.
struct DownloadResult: Sendable {
    var path = ""
    let size: Int64
    /// Nil without a transfer.
    let status: Int?
    var etag: String?
    var lastModified: String?
    let sha256: String
    var resumedFrom: Int64 = 0
    let attempts: Int
    let url: String

    var json: JSON {
        [
            "path": .string(path), "size": JSON(Int(size)), "status": status.map { JSON($0) } ?? .null,
            "etag": etag.map(JSON.string) ?? .null, "lastModified": lastModified.map(JSON.string) ?? .null,
            "sha256": .string(sha256), "resumedFrom": JSON(Int(resumedFrom)), "attempts": JSON(attempts),
            "url": .string(url),
        ]
    }
}
