import JobModel

/// A string compared by its bytes, as in databases; Swift compares strings by canonical equivalence.
struct Name: Hashable, Comparable, Sendable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (left: Name, right: Name) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    static func < (left: Name, right: Name) -> Bool { left.text.utf8.lexicographicallyPrecedes(right.text.utf8) }

    func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}

/// A job key chosen by its owner.
struct OwnedKey: Hashable, Sendable {
    let owner: UInt32
    let name: Name
}

/// The ready jobs of one owner in one queue.
struct ReadyGroup: Hashable, Sendable {
    let queue: Name
    let owner: UInt32
}

/// A job or a piece of work, sorted by a number: a time, a life or an owner.
struct NumberedID: Hashable, Comparable, Sendable {
    let number: Int64
    let id: Int64

    static func < (left: NumberedID, right: NumberedID) -> Bool {
        (left.number, left.id) < (right.number, right.id)
    }
}

/// A child, sorted by the list that made it.
struct ChildKey: Hashable, Comparable, Sendable {
    let parent: JobID
    let list: Int64
    let id: JobID

    static func < (left: ChildKey, right: ChildKey) -> Bool {
        (left.parent, left.list, left.id) < (right.parent, right.list, right.id)
    }
}

/// A finished root job, sorted by owner and end.
struct OwnedEnd: Hashable, Comparable, Sendable {
    let owner: UInt32
    let end: NumberedID

    static func < (left: OwnedEnd, right: OwnedEnd) -> Bool {
        left.owner == right.owner ? left.end < right.end : left.owner < right.owner
    }
}

/// A job with a number: a link of its chain, or one of its lists.
struct JobPart: Hashable, Comparable, Sendable {
    let job: JobID
    let number: Int64

    static func < (left: JobPart, right: JobPart) -> Bool {
        (left.job, left.number) < (right.job, right.number)
    }
}

/// A schedule, sorted by a number: its next time or its last job.
struct NumberedSchedule: Hashable, Comparable, Sendable {
    let number: Int64
    let key: ScheduleKey

    static func < (left: NumberedSchedule, right: NumberedSchedule) -> Bool {
        left.number == right.number ? left.key < right.key : left.number < right.number
    }
}

struct JobWork: Hashable, Comparable, Sendable {
    let kind: WorkRow.Kind
    let job: JobID
    let id: Int64

    static func < (left: JobWork, right: JobWork) -> Bool {
        (left.kind.rawValue, left.job, left.id) < (right.kind.rawValue, right.job, right.id)
    }
}
