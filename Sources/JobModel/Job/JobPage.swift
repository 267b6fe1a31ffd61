/// Job objects in one answer of bounded size, as JSON text.
package struct JobPage: Sendable {
    /// The size in bytes from which an answer omits results.
    package static let mostResults = 1 << 20

    /// The elements of an array, separated by commas.
    package private(set) var text: [UInt8] = []
    /// The number of jobs included, counted from the first.
    package private(set) var count = 0

    private let room: Int

    package init(within room: Int) { self.room = room }

    private var left: Int { room - text.count - (count > 0 ? 1 : 0) }
    private var detail: JobDetail { text.count < Self.mostResults ? .brief : .noResult }

    /// Appends a job; returns false if it does not fit, after which no job may be added.
    package mutating func add(_ job: JobView) -> Bool {
        // A page has at least one job, however little it shows: otherwise paging would never end.
        let least = count > 0 ? max(left, Self.mostResults) : left
        var next = job.text(detail, within: least)
        if next.count > left { next = job.text(.noResult, within: least) }
        guard next.count <= left else { return false }
        append(next)
        return true
    }

    /// Appends a job in any case; shows less of it if there is no more room before so many further ones.
    package mutating func add(_ job: JobView, before further: Int) {
        append(job.text(detail, within: left - further * (JobDetail.leastSize + 1)))
    }

    private mutating func append(_ element: [UInt8]) {
        if count > 0 { text.append(UInt8(ascii: ",")) }
        text += element
        count += 1
    }
}
