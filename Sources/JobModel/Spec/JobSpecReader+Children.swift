extension JobSpecReader {
    /// The spec of a stored child that is made of its list's template. `queue` and `priority` are those of its row, which it may
    /// have from its parent.
    static func child(
        of template: JSON, item: JSON, index: Int, queue: String, priority: Int
    ) throws(SpecError) -> JobSpec {
        let expanded: JSON
        do { expanded = try TemplateExpansion([.item: item, .index: JSON(index)]).child(template) } catch {
            throw SpecError(JSONPointer(), error.message)
        }
        return try stored(expanded.inheriting(queue: queue, priority: priority))
    }
}

extension JSON {
    /// A child's spec with the queue and priority of its parent, where it does not name them itself.
    package func inheriting(queue: String, priority: Int) -> JSON {
        guard var members = object else { return self }
        if members["queue"] == nil { members["queue"] = .string(queue) }
        if members["priority"] == nil, priority != 0 { members["priority"] = JSON(priority) }
        return .object(members)
    }
}
