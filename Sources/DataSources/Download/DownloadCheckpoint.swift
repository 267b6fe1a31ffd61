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
    /// Bytes from the first on that are on stable storage.
    var synced: Int64
    /// Of a `.part` with holes: those on stable storage. Nil of one that grows from its beginning.
    var fetched: ByteRanges?

    var json: JSON {
        var object = JSONObject([JSONObject.Member(name: "url", value: .string(url)), validator.member])
        object.append("total", ifPresent: total.map { JSON(Int($0)) })
        object.append("folder", .string(directory))
        object.append("name", .string(name))
        object.append("part", part.json)
        object.append("boot", .string(bootID))
        // Whoever knows nothing of holes finds no `synced`, and so begins anew instead of taking the file's size for what is there.
        if let fetched {
            object.append("fetched", .string(fetched.text))
        } else {
            object.append("synced", JSON(Int(synced)))
        }
        return .object(object)
    }
}

extension DownloadCheckpoint {
    /// The checkpoint that `json` writes; nil for one of another form, which is as good as none.
    init?(_ json: JSON?) {
        guard let json, let url = json["url"]?.string, let validator = Validator(json), let name = json["name"]?.string,
            let directory = json["folder"]?.string,
            let part = json["part"].flatMap(FileOperations.Status.Identity.init(json:)),
            let bootID = json["boot"]?.string, !name.isEmpty, !name.contains("/")
        else { return nil }
        self.url = url
        self.validator = validator
        self.directory = directory
        self.name = name
        self.part = part
        self.bootID = bootID
        if let text = json["fetched"]?.string {
            guard let fetched = ByteRanges(text) else { return nil }
            self.fetched = fetched
            synced = 0
        } else {
            guard let synced = json["synced"]?.int, synced >= 0 else { return nil }
            self.synced = Int64(synced)
        }
        total = json["total"]?.int.flatMap { $0 < 0 ? nil : Int64($0) }
    }

    /// Whether it is of the file that `target` is to become.
    func isAbout(_ target: DownloadTarget) -> Bool { directory == target.path.directory && name == target.name }

    /// How much of a `.part` of `size` bytes can be relied on in the boot `current`.
    func usable(ofSize size: Int64, boot current: String) -> Int64 {
        let written = bootID == current && !current.isEmpty ? size : min(size, synced)
        // The last byte is always asked for again, as only an answer shows that the file is still this one.
        return min(written, total.map { max(0, $0 - 1) } ?? written)
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
