import JobModel
import Testing

/// What was once accepted and stored is read for ever.
@Suite struct FixtureTests {
    @Test func fixtures_areThere() throws {
        #expect(try Fixture.all(in: "specs").count >= 18)
    }

    @Test(arguments: try Fixture.all(in: "specs"))
    func spec_isAccepted_andReadAgainFromTheStore(_ fixture: Fixture) throws {
        let spec = try JobSpecReader.spec(fixture.json, limits: JobLimits())
        #expect(spec.json.utf8 == fixture.json.utf8, "it is kept as it was written")
        #expect(try JSON(parsing: spec.json.description) == spec.json)
        let source = try #require(spec.json["source"])
        #expect(throws: Never.self) { try SourceParameters(source, mode: .literal, limits: JobLimits()) }
    }
}
