/// What limits count in a spec: what it held when it was accepted, whatever the limits are now.
struct SpecShape {
    /// Children of the longest list in it.
    private(set) var children = 0
    /// Children of all lists in it.
    private(set) var allChildren = 0
    /// Links of the job in it that has most.
    private(set) var links = 0
    /// Levels of lists.
    private(set) var depth: Int

    /// `depth` counts the lists around the spec.
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

extension JobLimits {
    /// The same, raised to what a spec holds that was accepted under others.
    func raised(to shape: SpecShape) -> JobLimits {
        var raised = self
        raised.children = max(children, shape.children)
        raised.links = max(links, shape.links)
        raised.depth = max(depth, shape.depth)
        return raised
    }
}

extension JSON {
    /// The children that a `list` or `each` source has as it is written, before any expression is filled in.
    package var writtenChildren: Int { (self["jobs"] ?? self["in"])?.array?.count ?? 0 }
}
