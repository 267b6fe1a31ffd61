/// The contents of an accepted spec that limits count, whatever the limits are now.
struct SpecShape {
    /// Children of its longest list.
    private(set) var children = 0
    /// Children of all its lists.
    private(set) var allChildren = 0
    /// Links of the job with the most.
    private(set) var links = 0
    /// Levels of lists.
    private(set) var depth: Int

    /// Measures a spec; `depth` is the number of enclosing lists.
    init(of spec: JSON, depth: Int) {
        self.depth = depth
        add(job: spec, depth)
    }

    private mutating func add(job: JSON, _ depth: Int) {
        add(source: job["source"], depth)
        let links = job["then"]?.array ?? []
        self.links = max(self.links, links.count)
        for link in links {
            for branch in ["then", "fail", "both", "finally"] { add(source: link[branch]?["source"], depth) }
        }
    }

    private mutating func add(source: JSON?, _ depth: Int) {
        guard let source, let type = source["type"]?.string.flatMap(SourceType.init(rawValue:)), type.hasChildren else {
            return
        }
        self.depth = max(self.depth, depth + 1)
        children = max(children, source.writtenChildren)
        let jobs = type == .list ? source["jobs"]?.array ?? [] : source["job"].map { [$0] } ?? []
        allChildren += jobs.count
        for job in jobs { add(job: job, depth + 1) }
    }
}

extension JSON {
    /// The number of children of a `list` or `each` source, before expansion.
    package var writtenChildren: Int { (self["jobs"] ?? self["in"])?.array?.count ?? 0 }
}
