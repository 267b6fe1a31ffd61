import JobModel
import Testing

/// How much of a job an answer tells, and how many fit into one.
@Suite struct JobPageTests {
    /// An error that is long in every way that clients and servers can make it.
    private func longError(_ text: String) -> JobError {
        func many(_ count: Int) -> String { String(repeating: text, count: count) }
        var error = JobError(JobError.Kind(rawValue: String(repeating: "k", count: 32)), many(5000))
        var failure = JobError(.list, many(5000))
        failure.cause = JobError(.http, many(1000), http: JobError.response(status: 500, reason: many(1000)))
        var size = 0
        for index in 0..<120 {
            failure.index = index
            error.add(failure: failure, listed: &size)
        }
        return error
    }

    /// Finished jobs that are long likewise; some have a result where one is given.
    private func long(
        _ ids: some Sequence<JobID>, text: String = "\u{1}", inlineResult: Int = JobLimits().inlineResult,
        result: (JobID) -> JSON? = { _ in nil }
    ) throws -> [JobView] {
        func many(_ count: Int) -> String { String(repeating: text, count: count) }
        let links = JSON.array(Array(repeating: ["fail": ["return": 1]], count: 12))
        let tag = JSON.string(many(256 / text.utf8.count))
        let spec = try JobSpecReader.spec(
            [
                "source": ["type": "value", "value": .string(many(5000))], "then": links,
                "tags": .array(Array(repeating: tag, count: 32)), "label": tag,
                "queue": .string(many(64 / text.utf8.count)),
            ], limits: JobLimits())
        let error = longError(text)
        return ids.map { id in
            let result = result(id)
            var job = ExampleJob(id: id, spec: spec, owner: .max, state: result == nil ? .failed : .succeeded)
            job.children = 10_000
            job.outcomes = (0..<12).map { link in
                LinkOutcome(link: link, error: error, startedAt: .after(0), finishedAt: .after(1), attempts: 1001)
            }
            job.startedAt = .after(0)
            job.finishedAt = .after(1)
            job.carried = result.map(Carried.value) ?? .failure(error)
            return job.view(inlineResult: inlineResult)
        }
    }

    @Test func error_isBounded_whateverItIsMadeOf() throws {
        let error = longError("\u{1}")
        #expect(error.json["message"]?.utf8.count ?? 0 <= JobError.mostMessage + 2)
        #expect(error.json.size < 300_000)
        #expect((error.failures?.count ?? 0) + (error.failuresOmitted ?? 0) == 120)
        #expect(JobError(json: error.json) == error)
    }

    @Test(arguments: ["x", "\u{1}", "\u{e9}", "\""]) func job_takesAtMostTheLeast_whereThereIsNoRoom(_ text: String)
        throws
    {
        let view = try #require(try long([.max], text: text).first)
        let done = try #require(try long([.max], text: text) { _ in .string(text) }.first)
        #expect(view.text(.whole, within: 0).count <= JobDetail.leastSize)
        #expect(done.text(.brief, within: 0).count <= JobDetail.leastSize)
        for room in [1000, 10_000, 100_000, 1 << 20, 3 << 19] {
            let text = view.text(.whole, within: room)
            #expect(text.count <= room)
            #expect(try JSON(parsing: text)["job"]?.int == .max)
        }
    }

    @Test func specAndResult_areToldByTheirSizes_whereTheyAreLong() throws {
        let result = JSON.string(String(repeating: "r", count: 65_535))
        var view = try #require(try long([1]) { _ in result }.first)
        #expect(view.json(.brief)["result"] == nil && view.json(.whole)["resultSize"] == 65_537)
        #expect(view.json(.brief)["specSize"]?.int ?? 0 > JobDetail.longestBriefSpec)
        #expect(view.json(.brief)["source"] == nil && view.json(.brief)["then"] == nil)
        #expect(view.json(.brief)["outcomes"]?.array?.count == 10 && view.json(.whole)["outcomes"]?.array?.count == 12)
        view = try #require(try long([1], inlineResult: 65_537) { _ in result }.first)
        #expect(view.json(.brief)["result"] != nil && view.json(.brief)["resultSize"] == nil)
        #expect(view.json(.noResult)["resultSize"] == 65_537)
    }

    @Test func pageOfAll_holdsEach_howeverLongTheyAre() throws {
        let jobs = try long(1...20) { $0.isMultiple(of: 2) ? "short" : nil }
        for room in [20 * (JobDetail.leastSize + 1), 100_000, 3 << 19] {
            var page = JobPage(within: room)
            for (index, job) in jobs.enumerated() { page.add(job, before: jobs.count - index - 1) }
            #expect(page.count == 20 && page.text.count <= room)
            let text = Array("[".utf8) + page.text + Array("]".utf8)
            #expect(try JSON(parsing: text).array?.map { $0["job"]?.int } == Array(1...20))
        }
    }

    private func page(of jobs: [JobView], within room: Int) -> JobPage {
        var page = JobPage(within: room)
        _ = jobs.allSatisfy { page.add($0) }
        return page
    }

    @Test func pageOfMany_endsEarly_andHoldsAtLeastOne() throws {
        let jobs = try long(1...5)
        for room in [JobDetail.leastSize, 100_000, 3 << 19] {
            let page = page(of: jobs, within: room)
            #expect(page.count >= 1 && page.text.count <= room)
        }
        #expect(page(of: jobs, within: 10).count == 0)
    }

    @Test func shortened_keepsWholeCharacters_withinTheLimit() {
        #expect("short".echoed == "short")
        let edge = String(repeating: "x", count: 256)
        #expect(edge.echoed == edge)
        for text in ["x", "\u{1}", "\u{e9}", "\u{1F600}", "\\"] {
            let echoed = String(repeating: text, count: 1000).echoed
            #expect(JSON.string(echoed).utf8.count - 2 <= String.mostEchoed)
            #expect(echoed.hasSuffix("\u{2026}") && echoed.dropLast().allSatisfy { String($0) == text })
        }
    }
}
