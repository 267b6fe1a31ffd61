extension JobSpecReader {
    /// Makes the spec of a stored child from its list's template.
    /// `queue` and `priority` come from its row, which may have inherited them.
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
    /// Returns a child's spec with its parent's queue and priority where it names none.
    package func inheriting(queue: String, priority: Int) -> JSON {
        guard var members = object else { return self }
        if members["queue"] == nil { members["queue"] = .string(queue) }
        if members["priority"] == nil, priority != 0 { members["priority"] = JSON(priority) }
        return .object(members)
    }
}
