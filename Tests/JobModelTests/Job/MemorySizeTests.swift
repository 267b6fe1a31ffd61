import JobModel
import Testing

/// What a job takes in memory, by which pages and quotas go.
@Suite struct MemorySizeTests {
    private let digits = JSON.array(Array(repeating: 1, count: 10_000))

    @Test func value_countsByWhatItTakes_andNotByItsText() throws {
        var job = try Job.chain()
        let before = job.memorySize
        try job.end(.success(digits))
        #expect(job.carriedMemory == Int64(digits.parsedCost) && job.carriedSize < job.carriedMemory / 15)
        #expect(job.memorySize - before >= job.carriedMemory)
        // A text takes about its bytes.
        var other = try Job.chain()
        try other.end(.success(.string(String(repeating: "x", count: 10_000))))
        #expect(other.memorySize - before < 10_500)
    }

    @Test func whatCameIntoAFailedLink_countsLikewise() throws {
        var job = try Job.chain(#"{"then":{"source":{"type":"value","value":1}}}"#)
        try job.run([0: .success(digits), 1: .lasting])
        #expect(job.memorySize > Int64(digits.parsedCost))
    }

    @Test func longSpec_countsByWhatItTakes() throws {
        let source: JSON = ["type": "value", "value": digits]
        let spec = try JobSpecReader.spec(["source": source], limits: JobLimits())
        #expect(spec.memorySize > 15 * spec.size)
        #expect(Job(submitting: spec, owner: 1, at: .after(0)).memorySize > Int64(digits.parsedCost))
    }

    @Test func page_isFull_onceItsJobsTakeSoMuch() throws {
        var page = StoredJobPage(limit: 100)
        var job = try Job.chain()
        try job.end(.success(.array(Array(repeating: 1, count: 1 << 15))))
        page.append(job)
        #expect(page.mayGrow)
        page.append(job)
        #expect(page.isFull && StoredJobPage.isFull(page.jobs))
    }
}
