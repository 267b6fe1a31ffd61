import JobModel
import JobProtocol
import MallocCounter
import Testing

/// What a submission costs in memory, from its line to its answer: the guard of its speed that needs no clock.
@Suite struct RequestCostTests {
    private static let line =
        Array(
            #"{"jsonrpc":"2.0","id":12,"method":"job.submit","params":{"source":{"type":"url","url":"#.utf8)
        + Array(#""http://127.0.0.1:8080/some/where/file.bin"},"queue":"default","priority":5,"tags":["a tag"]}}"#.utf8)

    /// What it takes today in unoptimized code, and a little more.
    private static let limits = (reading: 190, writing: 13)

    /// How many blocks of memory `body` asks for.
    private static func count(_ body: () throws -> Void) rethrows -> Int {
        let before = test_malloc_count()
        try body()
        return test_malloc_count() - before
    }

    @Test func submission_allocatesLittle_whenItIsReadAndAnswered() throws {
        func read() throws -> JobSpec {
            try JobSpecReader.spec(.object(IncomingLine(Self.line).calls[0].request.params), limits: JobLimits())
        }
        let spec = try read()
        var written = 0
        func write() {
            written += spec.json.utf8.count
            written += Answer.submission(id: 12, job: 123_456, state: .queued, created: true, watch: nil).count
        }
        write()
        let reading = try Self.count { _ = try read() }
        let writing = Self.count(write)
        #expect(reading <= Self.limits.reading, "reading took \(reading) blocks")
        #expect(writing <= Self.limits.writing, "writing took \(writing) blocks")
        #expect(reading > 0 && writing > 0 && written > 0, "something is counted")
    }
}
