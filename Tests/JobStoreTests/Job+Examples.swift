import JobModel

extension Timestamp {
    /// A time `seconds` after one that all tests share.
    static func after(_ seconds: Int) -> Timestamp {
        Timestamp(milliseconds: 1_790_000_000_000 + Int64(seconds) * 1000)
    }
}

extension JobSpec {
    /// The spec that `text` writes as JSON.
    static func parsing(_ text: String) throws -> JobSpec {
        try JobSpecReader.spec(JSON(parsing: text), limits: JobLimits())
    }
}

extension Job {
    /// A new job as a client would submit it; `members` are those of the spec beside its source.
    static func example(
        _ members: String = "", source: String = #"{"type": "value", "value": 1}"#, owner: UInt32 = 1000,
        parent: Parent? = nil, at time: Timestamp = .after(0)
    ) throws -> Job {
        let spec = try JobSpec.parsing(#"{"source": \#(source)\#(members.isEmpty ? "" : ", ")\#(members)}"#)
        return Job(submitting: spec, owner: owner, parent: parent, at: time)
    }

    /// The job after it ran at `time` and ended with `outcome`.
    func finished(_ outcome: Outcome = .success(1), at time: Timestamp) throws -> Job {
        var job = self
        _ = try job.handle(.start, at: time)
        _ = try job.handle(.finished(outcome, random: 0), at: time)
        return job
    }

    /// The job under the id the store gave it.
    func numbered(_ id: JobID) -> Job {
        var job = self
        job.id = id
        return job
    }
}
