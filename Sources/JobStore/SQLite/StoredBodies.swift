import JobModel

/// The sizes of the bodies of jobs that stand in files, by link, as a row has them.
enum StoredBodies {
    static func json(_ sizes: [Int: Int]) -> JSON {
        var object = JSONObject()
        for (link, size) in sizes.sorted(by: { $0.key < $1.key }) { object.append(String(link), JSON(size)) }
        return .object(object)
    }

    /// Nil where they make no sense.
    static func sizes(_ json: JSON) -> [Int: Int]? {
        guard case .object(let object) = json else { return nil }
        var sizes: [Int: Int] = [:]
        for member in object.members {
            guard let link = Int(member.name), let size = member.value.int, link >= 0, size >= 0 else { return nil }
            sizes[link] = size
        }
        return sizes
    }
}
