/// Job objects in one answer of bounded size, as JSON text.
package struct JobPage: Sendable {
    /// The size in bytes from which an answer omits results.
    package static let mostResults = 1 << 20

    /// The maximum size of one of very many jobs without its result, in bytes.
    fileprivate static let mostPlain = 128 << 10

    /// The elements of an array, separated by commas.
    package private(set) var text: [UInt8] = []
    /// The number of jobs included, counted from the first.
    package private(set) var count = 0

    fileprivate let room: Int

    /// Creates an empty page for as many jobs as fit into `room`.
    package init(within room: Int) {
        self.room = room
    }

    /// Appends a job; returns false if it does not fit, after which no job may be added.
    package mutating func add(_ job: JobView) -> Bool {
        let left = room - text.count - (count > 0 ? 1 : 0)
        let mayHaveResult = text.count < Self.mostResults
        // A page has at least one job, however little it shows: otherwise paging would never end.
        let next = count > 0 ? Self.element(job, mayHaveResult, within: left) : job.text(.brief, within: left)
        guard let next, next.count <= left else { return false }
        append(next)
        return true
    }

    fileprivate mutating func append(_ element: [UInt8]) {
        if count > 0 { text.append(UInt8(ascii: ",")) }
        text += element
        count += 1
    }

    /// Returns the text of one job, or nil if there is no room for it.
    fileprivate static func element(_ job: JobView, _ mayHaveResult: Bool, within room: Int) -> [UInt8]? {
        let whole = job.text(mayHaveResult ? .brief : .brief.withoutResult, within: max(room, JobPage.mostResults))
        if whole.count <= room { return whole }
        let plain = job.text(.brief.withoutResult, within: max(room, JobPage.mostResults))
        return plain.count <= room ? plain : nil
    }
}

/// A page of all given jobs, written one by one; it shows less of some if room is short.
package struct CompleteJobPage {
    package private(set) var page: JobPage
    private let jobs: [JobView]
    /// The minimal text of each job: all but its result.
    private var plain: [[UInt8]] = []
    /// The room of each job, and the room left for results.
    private var sizes: [Int] = []
    private var left = 0

    package init(_ jobs: [JobView], within room: Int) {
        self.jobs = jobs
        page = JobPage(within: room)
    }

    /// Processes the next job, in two passes; returns the number of bytes, or nil at the end.
    package mutating func advance() -> Int? {
        if plain.count < jobs.count {
            plain.append(jobs[plain.count].text(.brief.withoutResult, within: JobPage.mostPlain))
            if plain.count == jobs.count { allot() }
            return plain[plain.count - 1].count
        }
        guard page.count < jobs.count else { return nil }
        let before = page.text.count
        add(jobs[page.count], at: page.count)
        return page.text.count - before
    }

    /// Allots the room; what remains goes to results, from the first job on.
    private mutating func allot() {
        sizes = plain.map(\.count)
        left = page.room - jobs.count - sizes.reduce(0, +)
        guard left < 0 else { return }
        left = page.room - jobs.count * (JobDetail.least + 1)
        for (index, size) in sizes.enumerated() {
            let more = max(0, size - JobDetail.least)
            sizes[index] = more <= left ? size : JobDetail.least
            if more <= left { left -= more }
        }
        left = 0
    }

    private mutating func add(_ job: JobView, at index: Int) {
        if left > 0, page.text.count < JobPage.mostResults, job.job.state == .succeeded,
            let element = JobPage.element(job, true, within: sizes[index] + left)
        {
            left -= element.count - sizes[index]
            page.append(element)
        } else {
            page.append(sizes[index] >= plain[index].count ? plain[index] : job.text(.brief, within: sizes[index]))
        }
    }
}
