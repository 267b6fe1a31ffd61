import JobModel

/// What a later attempt needs to resume an unfinished `.part`, also after a crash.
struct DownloadCheckpoint: Sendable, Hashable {
    /// The URL as the spec has it, without credentials.
    var url: String
    var validator: Validator
    var total: Int64?
    var directory: String
    /// The final name of the file; with `exists: "rename"` it may differ from the spec's.
    var name: String
    var part: FileOperations.Status.Identity
    /// The boot of the machine in which the checkpoint was made: until the next one, all written bytes count.
    var bootID: String
    /// The bytes on stable storage.
    var synced = ByteRanges()
    /// Whether earlier bytes can be missing, so that the size of the file does not tell what is written.
    var hasHoles = false
    /// The bytes of a file with holes that were written, which count until the machine restarts.
    var written = ByteRanges()

    var json: JSON {
        .object([
            "url": url.json, validator.isTag ? "etag" : "lastModified": validator.text.json, "total": total?.json,
            "folder": directory.json, "name": name.json, "part": part.json, "boot": bootID.json,
            "synced": synced.text.json, "holes": hasHoles.json, "written": written.text.json,
        ])
    }
}

extension DownloadCheckpoint {
    /// Reads ``json``; nil for any other form, which counts as no checkpoint.
    init?(_ json: JSON?) {
        guard let json, let url = json["url"]?.string, let validator = (json["etag"] ?? json["lastModified"])?.string,
            let name = json["name"]?.string,
            let directory = json["folder"]?.string,
            let part = json["part"].flatMap(FileOperations.Status.Identity.init(json:)),
            let bootID = json["boot"]?.string, !name.isEmpty, !name.contains("/"),
            let synced = json["synced"]?.string.flatMap({ ByteRanges($0) }), let hasHoles = json["holes"]?.bool,
            let written = json["written"]?.string.flatMap({ ByteRanges($0) })
        else { return nil }
        self.init(
            url: url, validator: Validator(isTag: json["etag"] != nil, text: validator),
            total: json["total"]?.int.flatMap { $0 < 0 ? nil : Int64($0) },
            directory: directory, name: name, part: part, bootID: bootID, synced: synced, hasHoles: hasHoles,
            written: written)
    }

    func isAbout(_ target: DownloadTarget) -> Bool { directory == target.path.directory && name == target.name }

    /// Whether it is of the URL of `spec` or one of its mirrors.
    func isFrom(_ spec: DownloadSpec) -> Bool { spec.sources.contains { Masking.masked(url: $0) == url } }

    /// The path of the file, if `owner` may still write there.
    func path(of owner: UInt32, below directories: DownloadDirectories) throws(JobError) -> DownloadPath {
        try directories.path(directory + "/" + name, owner: owner)
    }

    /// The bytes of a `.part` of `size` bytes that can be relied on.
    func usable(ofSize size: Int64, boot current: String) -> ByteRanges {
        let isSameBoot = bootID == current && !current.isEmpty
        let present = !isSameBoot ? synced : hasHoles ? synced.union(written) : ByteRanges(0..<size)
        let usable = present.below(min(size, total ?? size))
        // The last byte is always fetched again, as only a response shows that this version is still current.
        return usable.count == total ? usable.below(usable.count - 1) : usable
    }
}

extension FileOperations.Status.Identity {
    /// As checkpoints and records store it. The numbers are text: they may exceed what JSON numbers can hold.
    var json: JSON { ["inode": .string(String(inode)), "createdAt": .string(String(createdAt))] }

    init?(json: JSON) {
        guard let inode = json["inode"]?.string.flatMap(UInt64.init),
            let createdAt = json["createdAt"]?.string.flatMap(Int64.init)
        else { return nil }
        self.init(inode: inode, createdAt: createdAt)
    }
}
