/// Job objects side by side in one answer of bounded size, as JSON text.
package struct JobPage: Sendable {
    /// Bytes of an answer from which on results are left out of it.
    package static let mostResults = 1 << 20

    /// The most bytes that one of very many jobs takes without its result.
    fileprivate static let mostPlain = 128 << 10

    /// The elements of an array, with commas between them.
    package private(set) var text: [UInt8] = []
    /// How many jobs it holds, the first of those there were.
    package private(set) var count = 0

    fileprivate let room: Int

    /// A page without jobs, to add as many as fit into `room`.
    package init(within room: Int) {
        self.room = room
    }

    /// Adds a job behind the others; false where it does not fit, and then no other is to be added.
    package mutating func add(_ job: JobView) -> Bool {
        let left = room - text.count - (count > 0 ? 1 : 0)
        let mayHaveResult = text.count < Self.mostResults
        // A page has at least one job, however much is left out of it: else asking for the next page would never end.
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

    /// One job, or nil where there is no room for it.
    fileprivate static func element(_ job: JobView, _ mayHaveResult: Bool, within room: Int) -> [UInt8]? {
        let whole = job.text(mayHaveResult ? .brief : .brief.withoutResult, within: max(room, JobPage.mostResults))
        if whole.count <= room { return whole }
        let plain = job.text(.brief.withoutResult, within: max(room, JobPage.mostResults))
        return plain.count <= room ? plain : nil
    }
}

/// A page of all of some jobs, written one by one: where there is too little room less is told of some.
package struct CompleteJobPage {
    package private(set) var page: JobPage
    private let jobs: [JobView]
    /// The least that is shown of each job: all but its result.
    private var plain: [[UInt8]] = []
    /// What each of them may take, and what is left for results.
    private var sizes: [Int] = []
    private var left = 0

    package init(_ jobs: [JobView], within room: Int) {
        self.jobs = jobs
        page = JobPage(within: room)
    }

    /// Works on the next job, each of which has its turn twice; gives how many bytes that were, or nil at the end.
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

    /// Room that is left goes to results, from the first job on.
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
