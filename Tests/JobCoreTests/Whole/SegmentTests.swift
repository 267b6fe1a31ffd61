import JobModel
import Testing

@testable import JobCore

/// How many connections a download may have: the host's limit counts each.
@Suite struct SegmentTests {
    private func download(_ segments: Int, _ host: String = "a", _ members: String = "") -> String {
        let source = #"{"type":"download","url":"http://\#(host)/x","path":"x","segments":\#(segments)}"#
        return #"{"source":\#(source)\#(members.isEmpty ? "" : ",")\#(members)}"#
    }

    private func permits(_ driver: CoreDriver) -> Int { driver.core.inspection.hostConnections }

    /// Starts a download that wants `segments` connections to a host of at most `perHost`; everything ends after `body`.
    private func withDownload(
        _ segments: Int, perHost: Int, _ members: String = "", _ body: (CoreDriver, JobID, RunID) throws -> Void
    ) throws {
        let driver = CoreDriver { $0.perHost = perHost }
        let id = try driver.submit(download(segments, "a", members))
        try body(driver, id, driver.run(of: id).run)
        driver.endAll()
        driver.expectQuiet()
    }

    @Test(arguments: [(1, 1), (4, 4), (6, 6), (16, 6)])
    func download_hasAsManyConnections_asItsHostHasFree(segments: Int, connections: Int) throws {
        try withDownload(segments, perHost: 6) { driver, id, _ in
            #expect(try driver.run(of: id).connections == connections)
            #expect(permits(driver) == connections)
            try driver.end(id)
            #expect(permits(driver) == 0)
        }
    }

    @Test func jobs_waitForTheHost_untilADownloadIsDone() throws {
        let driver = CoreDriver { $0.perHost = 4 }
        let first = try driver.submit(download(3))
        let second = try driver.submit(url())
        let third = try driver.submit(url())
        let elsewhere = try driver.submit(download(8, "b"))
        #expect(driver.atWork == [first, second, elsewhere])
        #expect(try driver.run(of: elsewhere).connections == 4)
        try driver.end(first)
        #expect(driver.atWork == [second, elsewhere, third])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func download_takesNothing_thatAnotherJobWaitsFor() throws {
        let driver = CoreDriver { $0.perHost = 2 }
        let urls = [try driver.submit(url()), try driver.submit(url())]
        let downloads = [try driver.submit(download(8)), try driver.submit(download(8))]
        try driver.end(urls[0])
        #expect(driver.atWork == [urls[1], downloads[0]])
        // Both have become free in turn; the second download waits for one of them.
        try driver.end(urls[1])
        #expect(driver.atWork == downloads)
        for id in downloads { #expect(try driver.run(of: id).connections == 1) }
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func cancelledDownload_givesItsConnectionsBack() throws {
        try withDownload(4, perHost: 4) { driver, id, _ in
            let waiting = try driver.submit(url())
            #expect(driver.atWork == [id])
            _ = driver.ask(.cancel(id))
            #expect(driver.atWork == [waiting])
        }
    }

    @Test func retriedDownload_isGivenItsConnectionsAnew() throws {
        try withDownload(4, perHost: 4, #""retry":{"max":1,"initial":10,"jitter":false}"#) { driver, id, _ in
            try driver.end(id, .failure(JobError(.network, "Broken.", retryable: true)))
            #expect(permits(driver) == 0)
            let other = try driver.submit(url())
            driver.advance(10)
            #expect(driver.atWork == [other, id])
            #expect(try driver.run(of: id).connections == 3)
        }
    }

    @Test func download_keepsItsConnections_whileOthersWait() throws {
        try withDownload(4, perHost: 4) { driver, id, _ in
            let waiting = try driver.submit(url())
            driver.advance(3600)
            #expect(driver.atWork == [id])
            #expect(permits(driver) == 4)
            try driver.end(id)
            #expect(driver.atWork == [waiting])
        }
    }

    @Test func refusedConnection_holdsBackOtherJobs_whileTheDownloadGoesOn() throws {
        try withDownload(2, perHost: 4) { driver, id, run in
            var error = JobError(.http, "Too many.", retryable: true)
            error.retryAfter = 30
            driver.feed(.refused(run, error))
            let waiting = try driver.submit(url())
            driver.advance(29)
            #expect(driver.atWork == [id])
            driver.advance(1)
            #expect(driver.atWork == [id, waiting])
        }
    }
}
