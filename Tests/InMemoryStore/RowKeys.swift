import JobModel

/// A text that is compared by its bytes, as databases do; Swift's strings are equal where they are canonically
/// equivalent.
struct Name: Comparable, Sendable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (left: Name, right: Name) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    static func < (left: Name, right: Name) -> Bool { left.text.utf8.lexicographicallyPrecedes(right.text.utf8) }
}

/// What jobs are counted and listed by; within one kind they are in the order of their ids.
struct RowKind: Comparable, Sendable {
    let owner: UInt32
    let queue: Name
    let state: JobState
    let isChild: Bool
    let source: Name

    static func < (left: RowKind, right: RowKind) -> Bool {
        if left.owner != right.owner { return left.owner < right.owner }
        if left.queue != right.queue { return left.queue < right.queue }
        if left.state != right.state { return left.state.number < right.state.number }
        if left.isChild != right.isChild { return right.isChild }
        return left.source < right.source
    }
}

/// The ready jobs of one owner in one queue.
struct ReadyGroup: Comparable, Sendable {
    let queue: Name
    let owner: UInt32

    static func < (left: ReadyGroup, right: ReadyGroup) -> Bool {
        left.owner == right.owner ? left.queue < right.queue : left.owner < right.owner
    }
}

/// A time with the job that it is of.
struct TimedJob: Comparable, Sendable {
    let time: Timestamp
    let id: JobID

    static func < (left: TimedJob, right: TimedJob) -> Bool {
        left.time == right.time ? left.id < right.id : left.time < right.time
    }
}

/// A child by the job and link that made it.
struct ChildKey: Comparable, Sendable {
    let parent: JobID
    let link: Int
    let index: Int
    let id: JobID

    init(_ parent: Job.Parent, _ id: JobID) {
        self.init(parent: parent.job, link: parent.link, index: parent.index, id: id)
    }

    init(parent: JobID, link: Int, index: Int, id: JobID = 0) {
        (self.parent, self.link, self.index, self.id) = (parent, link, index, id)
    }

    static func < (left: ChildKey, right: ChildKey) -> Bool {
        (left.parent, left.link, left.index, left.id) < (right.parent, right.link, right.index, right.id)
    }
}

/// A job and one of its links.
struct LinkKey: Comparable, Sendable {
    let job: JobID
    let link: Int

    static func < (left: LinkKey, right: LinkKey) -> Bool { (left.job, left.link) < (right.job, right.link) }
}

/// A text with a number, as which an owner's key or a job's tag is found.
struct NamedID: Comparable, Sendable {
    let name: Name
    let id: Int64

    init(_ name: String, _ id: Int64) { (self.name, self.id) = (Name(name), id) }

    static func < (left: NamedID, right: NamedID) -> Bool {
        left.name == right.name ? left.id < right.id : left.name < right.name
    }
}
