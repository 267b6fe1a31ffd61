import JobCore
import JobModel
import Testing

/// The files with the output of programs: which ones a job keeps, and what they count.
@Suite struct OutputTests {
    private static let program: JSON = ["type": "program", "program": "x"]
    private let spec: JSON = [
        "source": program, "retry": ["max": 20, "initial": 1, "factor": 1, "jitter": false],
        "then": [["then": ["source": program]]],
    ]
    private let failure = JobError(.program, "It exited with 75.", retryable: true)

    private func outputs(_ driver: CoreDriver, _ job: JobID) throws -> [LinkBlob] {
        try driver.row(job).blobs.filter(\.isOutput)
    }

    private func stored(_ driver: CoreDriver) -> Int64 {
        driver.core.status.counts.values.reduce(0) { $0 + $1.bytes }
    }

    @Test func latestTenAttemptsOfALink_areKept() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(spec)
        var files: [BlobReference] = []
        for _ in 1...12 {
            files.append(try driver.run(of: job).output(size: 100))
            try driver.fail(job, failure, output: 100)
            driver.advance(by: 5)
        }
        #expect(try outputs(driver, job).map(\.attempt) == Array(3...12))
        #expect(try outputs(driver, job).map(\.blob) == Array(files[2...]))
        #expect(driver.unlinked == Array(files[..<2]))
        // Each link has its own.
        try driver.succeed(job, output: 7)
        files.append(try driver.run(of: job).output(size: 8))
        try driver.succeed(job, output: 8)
        #expect(try outputs(driver, job).count == 11 && driver.unlinked == Array(files[..<3]))
        #expect(try outputs(driver, job).last == LinkBlob(link: 1, blob: files[12], attempt: 1))
    }

    @Test func silentAttempt_hasNoOutput_ofAnEarlierOne() throws {
        let driver = try CoreDriver()
        let silent = try driver.submit(spec)
        try driver.fail(silent, failure)
        #expect(try outputs(driver, silent).isEmpty)
        let job = try driver.submit(spec)
        try driver.fail(job, failure, output: 100)
        driver.advance(by: 5)
        let run = try driver.run(of: job)
        try driver.succeed(job)
        #expect(try outputs(driver, job).map(\.attempt) == [1, 2])
        #expect(try outputs(driver, job).last?.blob == run.output())
    }

    @Test func output_outlastsARetry_untilTheJobIsRemoved() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(spec)
        try driver.succeed(job, output: 10)
        try driver.fail(job, output: 20)
        for point in [RetryPoint.failed, .start] {
            driver.ask(.change(job, .retry(from: point)))
            try driver.fail(job, output: 30)
        }
        #expect(try outputs(driver, job).map(\.blob.size) == [10, 20, 30, 30])
        #expect(try outputs(driver, job).map(\.link) == [0, 1, 1, 0])
        #expect(driver.unlinked.isEmpty)
        let files = try outputs(driver, job).map(\.blob)
        driver.ask(.change(job, .remove))
        #expect(!driver.exists(job) && Set(driver.unlinked) == Set(files))
    }

    @Test func output_countsAsStored() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(spec)
        let before = stored(driver)
        try driver.fail(job, failure, output: 50_000)
        #expect((before + 50_000..<before + 51_000).contains(stored(driver)))
        driver.ask(.change(job, .cancel))
        #expect(stored(driver) >= before + 50_000)
        driver.ask(.change(job, .remove))
        #expect(stored(driver) == 0)
    }

    /// The program has written; the result has no room, which does not take its output away.
    @Test func output_isKept_whereTheResultIsRefused() throws {
        var settings = CoreSettings()
        settings.storedPerUser = 20_000
        let driver = try CoreDriver(settings)
        let job = try driver.submit(spec)
        let run = try driver.run(of: job)
        try driver.succeed(job, "\"\(String(repeating: "x", count: 30_000))\"", output: 10)
        #expect(try driver.row(job).carried?.error?.kind == .tooLarge)
        #expect(try outputs(driver, job).map(\.blob) == [run.output(size: 10)] && driver.unlinked.isEmpty)
    }

    // MARK: - Lost runs

    /// The files to measure.
    private func measured(_ driver: CoreDriver) -> [BlobReference] {
        driver.effects.compactMap { effect in if case .measure(_, let output) = effect { output } else { nil } }
    }

    @Test(arguments: [Core.Start.crashed, .clean])
    func outputOfALostRun_isKept_andMeasured(_ start: Core.Start) throws {
        let driver = try CoreDriver()
        let interrupted = try driver.submit(["source": Self.program])
        let repeated = try driver.submit(spec)
        let jobs = [interrupted, repeated]
        let runs = try jobs.map { try driver.run(of: $0) }
        try driver.restart(start)
        #expect(try driver.row(interrupted).carried?.error?.kind == .interrupted)
        #expect(try driver.row(repeated).state == .running)
        #expect(measured(driver) == runs.map { $0.output() })
        for (job, run) in zip(jobs, runs) {
            #expect(try outputs(driver, job) == [LinkBlob(link: 0, blob: run.output(), attempt: 1)])
            let before = stored(driver)
            driver.send(.measured(job, run.output(size: 5000)))
            #expect(try outputs(driver, job) == [LinkBlob(link: 0, blob: run.output(size: 5000), attempt: 1)])
            #expect(stored(driver) == before + 5000)
        }
        // The attempt that does not count has the number of the next.
        try driver.fail(repeated, output: 3)
        #expect(try outputs(driver, repeated).map(\.attempt) == [1, 1])
    }

    @Test func outputOfALostRun_isForgotten_whereThereIsNone() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(["source": Self.program])
        let run = try driver.run(of: job)
        try driver.restart(.crashed)
        driver.send(.measured(job, run.output(size: 0)))
        #expect(try outputs(driver, job).isEmpty)
        // Meanwhile it may have been removed.
        driver.ask(.change(job, .remove))
        #expect(driver.round([.measured(job, run.output(size: 7))]).isCommitted)
        #expect(stored(driver) == 0)
    }

    @Test func outputOfACancelledRun_isKept_whenTheDaemonDies() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(spec)
        let run = try driver.run(of: job)
        driver.ask(.change(job, .cancel))
        try driver.restart(.crashed)
        #expect(try driver.row(job).state == .cancelled)
        #expect(try outputs(driver, job).map(\.blob) == [run.output()])
        #expect(measured(driver) == [run.output()])
    }
}

extension RoundEnd {
    fileprivate var isCommitted: Bool { if case .committed = self { true } else { false } }
}
