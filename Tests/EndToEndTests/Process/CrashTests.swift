import Testing

/// The short form of the crash harness; `make test-crash` runs the long one.
@Suite struct CrashTests {
    @Test func answeredJobs_areThereAndRight_afterManyKills() async throws {
        try await Stage.with {
            let (end, output, errors) = try await ChildProcess.run(
                [BuiltProgram.crash, "10"], within: 2 * Patience.seconds)
            #expect(end == .code(0), "\(output)\(errors)")
            #expect(output.contains("lost = 0"))
        }
    }

    @Test func jobs_endOnceAndLeaveNothingWrong_whenFileOperationsFail() async throws {
        try await Stage.with {
            let (end, output, errors) = try await ChildProcess.run(
                [BuiltProgram.crash, "faults", "12"], within: 2 * Patience.seconds)
            #expect(end == .code(0), "\(output)\(errors)")
            #expect(output.contains("problems = 0"))
        }
    }
}
