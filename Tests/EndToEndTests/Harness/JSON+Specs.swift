import JobModel

/// Specs as tests write them.
extension JSON {
    /// An object with the members of `self`, followed by these.
    func with(_ more: [String: JSON]) -> JSON {
        guard var object else { return self }
        for (name, value) in more.sorted(by: { $0.key < $1.key }) { object[name] = value }
        return .object(object)
    }

    /// A job that downloads; `more` are members of the source, `members` of the spec.
    static func download(
        _ url: JSON, to path: String, _ more: [String: JSON] = [:], retry: JSON? = nil, members: [String: JSON] = [:]
    ) -> JSON {
        let source: JSON = ["type": "download", "url": url, "path": .string(path)]
        let spec: JSON = ["source": source.with(more)]
        return spec.with(members.merging(retry.map { ["retry": $0] } ?? [:]) { $1 })
    }

    /// A job that fetches.
    static func fetch(_ url: JSON, _ members: [String: JSON] = [:]) -> JSON {
        let spec: JSON = ["source": ["type": "url", "url": url]]
        return spec.with(members)
    }

    /// A job that is done at once.
    static func value(_ value: JSON, _ members: [String: JSON] = [:]) -> JSON {
        let spec: JSON = ["source": ["type": "value", "value": value]]
        return spec.with(members)
    }

    /// A job that fails at once.
    static func failure(_ kind: String = "invalid", _ members: [String: JSON] = [:]) -> JSON {
        let spec: JSON = ["source": ["type": "error", "kind": .string(kind), "message": "It was meant to fail."]]
        return spec.with(members)
    }

    /// A job that takes this many seconds.
    static func timer(_ seconds: Double, _ members: [String: JSON] = [:]) -> JSON {
        let spec: JSON = ["source": ["type": "timer", "seconds": JSON(seconds)]]
        return spec.with(members)
    }

    /// This value, or nil if it is the JSON value `null`.
    var unlessNull: JSON? { isNull ? .none : .some(self) }

    /// The object of the member `job`, as most methods take it.
    static func job(_ id: Int) -> JSON { ["job": JSON(id)] }
}

/// A file that tests download, with its digest as `sha256sum` tells it.
enum Sample {
    /// 100,000 bytes without a short period.
    static let content = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }
    static let sha256 = "e6887b97dc43bee2e548c4d77ebcb42cbef96a0df13f1c972da7ae646fcab313"
    /// 4,000,000 bytes: enough for the daemon to record an unfinished download.
    static let large = [[UInt8]](repeating: content, count: 40).flatMap(\.self)
    static let largeSHA256 = "b5a9bc2581916ff3f657b3dcce46b789b11166d8c7d134398f7c2848ab46d0a7"
}
