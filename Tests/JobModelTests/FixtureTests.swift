import JobModel
import Testing

/// What was once accepted, stored or shown is read for ever.
@Suite struct FixtureTests {
    @Test func fixtures_areThere() throws {
        #expect(try Fixture.all(in: "specs").count >= 23)
        #expect(try Fixture.all(in: "jobs").count >= 10)
        #expect(try Fixture.all(in: "errors").count >= 6)
    }

    @Test(arguments: try Fixture.all(in: "specs"))
    func spec_isAccepted_andReadAgainFromTheStore(_ fixture: Fixture) throws {
        let spec = try JobSpecReader.spec(fixture.json, limits: JobLimits())
        #expect(spec.json.utf8 == fixture.json.utf8, "it is kept as it was written")
        #expect(try JSON(parsing: spec.json.description) == spec.json)
        let source = try #require(spec.json["source"])
        #expect(throws: Never.self) { try SourceParameters(source, mode: .literal, limits: JobLimits()) }
    }

    @Test(arguments: try Fixture.all(in: "errors"))
    func error_isRead_andWrittenAsItWas(_ fixture: Fixture) {
        #expect(JobError(json: fixture.json).json.utf8 == fixture.json.utf8)
    }

    @Test(arguments: try Fixture.all(in: "jobs"))
    func job_isShown_asItWas(_ fixture: Fixture) throws {
        let (job, progress) = try Self.job(shown: fixture.json)
        #expect(job.json(progress: progress).description == fixture.json.description)
    }

    private static func time(_ name: String, _ json: JSON) throws -> Timestamp? {
        try json[name].map { try #require($0.string.flatMap(Timestamp.init(rfc3339:))) }
    }

    private static func outcome(shown json: JSON) throws -> LinkOutcome {
        LinkOutcome(
            link: try #require(json["link"]?.int), error: json["error"].map(JobError.init(json:)),
            startedAt: try #require(try time("startedAt", json)),
            finishedAt: try #require(try time("finishedAt", json)), attempts: try #require(json["attempts"]?.int))
    }

    /// The job that is shown so.
    private static func job(shown json: JSON) throws -> (ExampleJob, Progress?) {
        func time(_ name: String) throws -> Timestamp? { try Self.time(name, json) }
        var spec = JSONObject()
        for name in ["source", "then", "queue", "priority", "key", "tags", "label"] { spec[name] = json[name] }
        var job = ExampleJob(
            id: JobID(try #require(json["job"]?.int)), spec: try JobSpecReader.spec(.object(spec), limits: JobLimits()),
            owner: UInt32(try #require(json["owner"]?.int)),
            state: try #require(json["state"]?.string.flatMap(JobState.init(rawValue:))),
            createdAt: try #require(try time("createdAt")), parent: json["parent"]?.int.map { JobID($0) })
        job.notBefore = try time("notBefore")
        job.startedAt = try time("startedAt")
        job.finishedAt = try time("finishedAt")
        job.link = try #require(json["link"]?.int)
        job.attempt = try #require(json["attempt"]?.int)
        job.children = json["children"]?.int ?? 0
        job.outcomes = try #require(json["outcomes"]?.array).map(Self.outcome(shown:))
        if let result = json["result"] { job.carried = .value(result) }
        if let error = json["error"].map(JobError.init(json:)) {
            if job.state.isTerminal { job.carried = .failure(error) } else { job.lastFailure = error }
        }
        let progress = try json["progress"].map { progress in
            Progress(
                completed: Int64(try #require(progress["completed"]?.int)),
                total: progress["total"]?.int.map(Int64.init),
                unit: try #require(progress["unit"]?.string.flatMap(Progress.Unit.init(rawValue:))),
                rate: progress["rate"]?.double)
        }
        return (job, progress)
    }
}
