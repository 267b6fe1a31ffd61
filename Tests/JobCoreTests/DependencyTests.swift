import InMemoryStore
import JobCore
import JobModel
import Testing

/// Jobs that wait for other jobs.
@Suite struct DependencyTests {
    private let work: JSON = ["source": ["type": "url", "url": "http://h/"], "retry": ["max": 0]]
    /// Takes the id of the job itself for that of the other.
    private let waitsForItself: JSON = [
        "source": ["type": "value", "value": 1], "then": [["then": ["source": ["type": "job", "job": "{{job/id}}"]]]],
    ]

    private func waiting(for job: JobID, then: JSON = []) -> JSON {
        ["source": ["type": "job", "job": JSON(Int(job))], "then": then]
    }

    private func text(_ carried: Carried?) -> String? {
        guard case .success(.inline(let text))? = carried else { return nil }
        return String(decoding: text, as: UTF8.self)
    }

    private func code(_ answer: CoreAnswer?) -> ProtocolError.Code? {
        if case .failed(let error)? = answer { ProtocolError.Code(rawValue: error.code) } else { nil }
    }

    /// A job that links the file of another one's result.
    private func linking() throws -> (driver: CoreDriver, target: JobID, job: JobID, file: BlobReference) {
        let driver = try CoreDriver()
        let target = try driver.submit(work)
        let job = try driver.submit(waiting(for: target))
        driver.expandsSteps = false
        let file = BlobReference(life: 1, number: 5, size: 70_000)
        try driver.succeed(target, RunEnd(.success(.file(file))))
        return (driver, target, job, file)
    }

    @Test func wait_hasTheResult_andHoldsNoSlot() throws {
        let driver = try CoreDriver()
        let target = try driver.submit(work)
        let job = try driver.submit(waiting(for: target))
        #expect(try driver.row(job).waiting == .job)
        #expect(driver.live.count == 1)
        try driver.succeed(target, "[7]")
        #expect(text(try driver.row(job).carried) == "[7]")
        // An ended job is not waited for.
        let late = try driver.submit(waiting(for: target))
        #expect(text(try driver.row(late).carried) == "[7]")
    }

    @Test func wait_hasTheError_asACause_andIsNotRetried() throws {
        let driver = try CoreDriver()
        let target = try driver.submit(work)
        let first = try driver.submit(waiting(for: target))
        let second = try driver.submit(waiting(for: first))
        try driver.fail(target, JobError(.network, "It broke.", retryable: true))
        for (job, cause) in [(first, target), (second, first)] {
            let row = try driver.row(job)
            #expect(row.state == .failed)
            #expect(row.carried?.error?.kind == .network)
            #expect(row.carried?.error?.message == "It broke.")
            #expect(row.carried?.error?.isRetryable == false)
            #expect(row.carried?.error?.cause?.job == cause)
        }
    }

    @Test func wait_links_theFilesOfAResult() throws {
        let driver = try CoreDriver()
        let target = try driver.submit(work)
        let job = try driver.submit(waiting(for: target))
        let body = BlobReference(life: 1, number: 5, size: 70_000)
        try driver.succeed(target, RunEnd(.success(.inline(Array("{}".utf8))), body: body))
        #expect(try driver.row(job).state == .succeeded)
        #expect(try driver.row(job).blobs.map(\.blob) == [body.renamed])
        let again = try driver.submit(waiting(for: job))
        #expect(try driver.row(again).blobs.map(\.blob) == [body])
    }

    @Test func retry_waits_whileADependentTakesOverTheFiles() throws {
        let (driver, target, job, file) = try linking()
        #expect(code(driver.ask(.change(target, .retry(from: .start)))) == .busy)
        try driver.succeed(job, RunEnd(.success(.file(file.renamed))))
        #expect(code(driver.ask(.change(target, .retry(from: .start)))) == nil)
        #expect(driver.unlinked == [file])
    }

    @Test func crash_whileFilesAreLinked_linksThemAgain() throws {
        let (driver, _, job, file) = try linking()
        #expect(try driver.row(job).run != nil)
        driver.expandsSteps = true
        try driver.restart(.crashed)
        #expect(try driver.row(job).carried == .success(.file(file.renamed)))
    }

    @Test func remove_isRefused_untilTheDependentHasEnded() throws {
        let driver = try CoreDriver()
        let target = try driver.submit(work)
        try driver.succeed(target)
        var spec = waiting(for: target).object ?? JSONObject()
        spec["delay"] = 60
        let job = try driver.submit(.object(spec))
        #expect(code(driver.ask(.change(target, .remove))) == .wrongState)
        driver.ask(.change(job, .cancel))
        guard case .done? = driver.ask(.change(target, .remove)) else {
            return #expect(Bool(false), "It was not removed.")
        }
    }

    @Test func submission_isRefused_forUnknownJobs_andThoseOfOthers() throws {
        let driver = try CoreDriver()
        let foreign = try driver.submit(work, as: 2)
        for target in [foreign, 99] {
            let answer = driver.ask(.submit([try driver.new(waiting(for: target))]), isAdmin: true)
            guard case .submitted(let results)? = answer, case .failure(let error)? = results.first else {
                Issue.record("\(String(describing: answer))")
                continue
            }
            #expect(error.data["pointer"] == "/source/job")
        }
    }

    @Test func itself_anAncestor_andACycle_areInvalid() throws {
        let driver = try CoreDriver()
        let own = try driver.submit(waitsForItself)
        #expect(try driver.row(own).carried?.error?.kind == .invalid)

        driver.expandsSteps = false
        let list = try driver.submit(["source": ["type": "list", "jobs": [work]]])
        driver.expandsSteps = true
        let opening = ListRow(job: list, link: 0, mode: .settled, concurrency: nil, total: 1, template: nil)
        driver.send(.run(try driver.run(of: list), .list(opening)))
        let child = try #require(driver.live.values.first?.job)
        driver.send(.run(try driver.run(of: child), .job(list)))
        #expect(try driver.row(child).carried?.error?.kind == .invalid)

        let first = try driver.submit(work)
        let second = try driver.submit(waiting(for: first))
        let third = try driver.submit(waiting(for: second))
        driver.send(.run(try driver.run(of: first), .job(third)))
        for job in [first, second, third] { #expect(try driver.row(job).carried?.error?.kind == .invalid) }
    }

    @Test func cancel_deadline_andTimeout_endAWait() throws {
        let driver = try CoreDriver()
        let target = try driver.submit(work)
        func submit(_ members: (String, JSON)...) throws -> JobID {
            var spec = waiting(for: target).object ?? JSONObject()
            for (name, value) in members { spec[name] = value }
            return try driver.submit(.object(spec))
        }
        let cancelled = try submit()
        let overdue = try submit(("deadline", 5))
        let late = try submit(("timeout", 5), ("retry", ["max": 3]))
        let timer = try driver.submit(["source": ["type": "timer", "seconds": 10], "timeout": 5])
        driver.ask(.change(cancelled, .cancel))
        driver.advance(by: 6)
        #expect(try driver.row(cancelled).state == .cancelled)
        #expect(try driver.row(overdue).carried?.error?.kind == .deadline)
        // The timeout bounds the whole wait, so there is no other attempt.
        for job in [late, timer] {
            #expect(try driver.row(job).carried?.error?.kind == .timeout && driver.row(job).state == .failed)
        }
        try driver.succeed(target)
        #expect(try driver.row(late).state == .failed)
    }

    @Test func theFirstEndCounts_ifTheJobIsRetried() throws {
        let driver = try CoreDriver()
        let target = try driver.submit(work)
        let job = try driver.submit(waiting(for: target))
        let run = try driver.run(of: target)
        // The dependents have not been told when the retry comes.
        driver.round([.run(run, .ended(RunEnd(.failure(JobError(.http, "It broke.")))))])
        let request = driver.id()
        driver.round([.request(request, .change(target, .retry(from: .failed)), Caller(uid: 1, isAdmin: false))])
        #expect(code(driver.answers[request]) == .busy)
        driver.settle()
        #expect(try driver.row(job).carried?.error?.kind == .http)
    }
}
