/// Job objects in one answer of bounded size, as JSON text.
package struct JobPage: Sendable {
    /// The size in bytes from which an answer omits results.
    package static let mostResults = 1 << 20

    /// The maximum size of one of very many jobs without its result, in bytes.
    private static let mostPlain = 128 << 10

    /// The elements of an array, separated by commas.
    package private(set) var text: [UInt8] = []
    /// The number of jobs included, counted from the first.
    package private(set) var count = 0

    private let room: Int

    package init(within room: Int) { self.room = room }

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

    private mutating func append(_ element: [UInt8]) {
        if count > 0 { text.append(UInt8(ascii: ",")) }
        text += element
        count += 1
    }

    private static func element(_ job: JobView, _ mayHaveResult: Bool, within room: Int) -> [UInt8]? {
        let whole = job.text(mayHaveResult ? .brief : .brief.withoutResult, within: max(room, JobPage.mostResults))
        if whole.count <= room { return whole }
        let plain = job.text(.brief.withoutResult, within: max(room, JobPage.mostResults))
        return plain.count <= room ? plain : nil
    }
}

extension JobPage {
    /// Creates a page of all given jobs; it shows less of some if room is short.
    package init(all jobs: [JobView], within room: Int) {
        self.init(within: room)
        // All of each but its result.
        let plain = jobs.map { $0.text(.brief.withoutResult, within: Self.mostPlain) }
        var sizes = plain.map(\.count)
        var left = room - jobs.count - sizes.reduce(0, +)
        if left < 0 {
            left = room - jobs.count * (JobDetail.least + 1)
            for (index, size) in sizes.enumerated() {
                let more = max(0, size - JobDetail.least)
                if more <= left { left -= more } else { sizes[index] = JobDetail.least }
            }
            left = 0
        }
        for (index, job) in jobs.enumerated() {
            // What remains goes to results, from the first job on.
            if left > 0, text.count < Self.mostResults, job.hasResult,
                let element = Self.element(job, true, within: sizes[index] + left)
            {
                left -= element.count - sizes[index]
                append(element)
            } else {
                append(sizes[index] >= plain[index].count ? plain[index] : job.text(.brief, within: sizes[index]))
            }
        }
    }
}
