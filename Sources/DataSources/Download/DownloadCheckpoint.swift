import JobModel

/// What must be known of an unfinished `.part` to go on with it, also after a crash.
///
/// It lasts as long as the transfer. Of a finished one ``DownloadRecord`` is kept, with which the next one to the same path
/// is compared.
struct DownloadCheckpoint: Sendable, Hashable {
    /// Where it comes from, as the spec writes it but for credentials.
    var url: String
    var validator: Validator
    /// Bytes of the whole file, where the server said.
    var total: Int64?
    /// The absolute path of the directory that the file lies in.
    var directory: String
    /// The name that the file will have; with `exists: "rename"` not that of the spec.
    var name: String
    var part: FileOperations.Status.Identity
    /// The boot in which the checkpoint was made: while it lasts, all that was written counts.
    var bootID: String
    /// What is on stable storage.
    var synced = ByteRanges()
    /// Whether bytes can be missing before others, so that the size does not say what is written.
    var hasHoles = false

    var json: JSON {
        var object = JSONObject([JSONObject.Member(name: "url", value: .string(url)), validator.member])
        object.append("total", ifPresent: total.map { JSON(Int($0)) })
        object.append("folder", .string(directory))
        object.append("name", .string(name))
        object.append("part", part.json)
        object.append("boot", .string(bootID))
        object.append("synced", .string(synced.text))
        object.append("holes", .bool(hasHoles))
        return .object(object)
    }
}

extension DownloadCheckpoint {
    /// The checkpoint that `json` writes; nil for one of another form, which is as good as none.
    init?(_ json: JSON?) {
        guard let json, let url = json["url"]?.string, let validator = Validator(json), let name = json["name"]?.string,
            let directory = json["folder"]?.string,
            let part = json["part"].flatMap(FileOperations.Status.Identity.init(json:)),
            let bootID = json["boot"]?.string, !name.isEmpty, !name.contains("/"),
            let synced = json["synced"]?.string.flatMap({ ByteRanges($0) }), let hasHoles = json["holes"]?.bool
        else { return nil }
        self.url = url
        self.validator = validator
        self.directory = directory
        self.name = name
        self.part = part
        self.bootID = bootID
        self.synced = synced
        self.hasHoles = hasHoles
        total = json["total"]?.int.flatMap { $0 < 0 ? nil : Int64($0) }
    }

    /// Whether it is of the file that `target` is to become.
    func isAbout(_ target: DownloadTarget) -> Bool { directory == target.path.directory && name == target.name }

    /// The path that it is about, as far as `owner` may still write there.
    func path(of owner: UInt32, below directories: DownloadDirectories) throws(JobError) -> DownloadPath {
        try directories.path(directory + "/" + name, owner: owner)
    }

    /// What of a `.part` of `size` bytes can be relied on in the boot `current`; `noted` is what one with holes says of itself.
    func usable(ofSize size: Int64, noted: ByteRanges? = nil, boot current: String) -> ByteRanges {
        let isSameBoot = bootID == current && !current.isEmpty
        let written = isSameBoot ? hasHoles ? noted ?? synced : ByteRanges(0..<size) : synced
        let usable = written.below(min(size, total ?? size))
        // The last byte is always asked for again, as only an answer shows that the file is still this one.
        return usable.count == total ? usable.below(usable.count - 1) : usable
    }
}

extension FileOperations.Status.Identity {
    /// As checkpoints and records have it: the numbers as text, since they may be larger than what JSON numbers keep.
    var json: JSON {
        [
            "inode": .string(String(inode)), "createdAt": .string(String(createdAt)),
            "device": .string(String(device)),
        ]
    }

    init?(json: JSON) {
        guard let inode = json["inode"]?.string.flatMap(UInt64.init),
            let createdAt = json["createdAt"]?.string.flatMap(Int64.init)
        else { return nil }
        self.init(
            device: json["device"]?.string.flatMap(UInt64.init) ?? 0, inode: inode, createdAt: createdAt)
    }
}
