/// Job objects side by side in one answer of bounded size, as JSON text.
package struct JobPage: Sendable {
    /// Bytes of an answer from which on results are left out of it.
    package static let mostResults = 1 << 20

    /// The most bytes that one of very many jobs takes without its result.
    private static let mostPlain = 128 << 10

    /// The elements of an array, with commas between them.
    package private(set) var text: [UInt8] = []
    /// How many jobs it holds, the first of those there were.
    package private(set) var count = 0

    private let room: Int

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

    /// All of `jobs`: where there is too little room for that less is told of some.
    package init(allOf jobs: [JobView], within room: Int) {
        self.room = room
        // The least that is shown of each job comes first; room that is left goes to results, from the first job on.
        let plain = jobs.map { $0.text(.brief.withoutResult, within: Self.mostPlain) }
        var sizes = plain.map(\.count)
        var left = room - jobs.count - sizes.reduce(0, +)
        if left < 0 {
            left = room - jobs.count * (JobDetail.least + 1)
            for (index, size) in sizes.enumerated() {
                let more = max(0, size - JobDetail.least)
                sizes[index] = more <= left ? size : JobDetail.least
                if more <= left { left -= more }
            }
            left = 0
        }
        for (index, job) in jobs.enumerated() {
            if left > 0, text.count < Self.mostResults, job.job.state == .succeeded,
                let element = Self.element(job, true, within: sizes[index] + left)
            {
                left -= element.count - sizes[index]
                append(element)
            } else {
                append(sizes[index] >= plain[index].count ? plain[index] : job.text(.brief, within: sizes[index]))
            }
        }
    }

    private mutating func append(_ element: [UInt8]) {
        if count > 0 { text.append(UInt8(ascii: ",")) }
        text += element
        count += 1
    }

    /// One job, or nil where there is no room for it.
    private static func element(_ job: JobView, _ mayHaveResult: Bool, within room: Int) -> [UInt8]? {
        let whole = job.text(mayHaveResult ? .brief : .brief.withoutResult, within: max(room, JobPage.mostResults))
        if whole.count <= room { return whole }
        let plain = job.text(.brief.withoutResult, within: max(room, JobPage.mostResults))
        return plain.count <= room ? plain : nil
    }
}
