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

    @Test(arguments: [(1, 1), (4, 4), (6, 6), (16, 6)])
    func download_hasAsManyConnections_asItsHostHasFree(segments: Int, connections: Int) throws {
        let driver = CoreDriver { $0.perHost = 6 }
        let id = try driver.submit(download(segments))
        #expect(try driver.run(of: id).connections == connections)
        #expect(permits(driver) == connections)
        try driver.end(id)
        #expect(permits(driver) == 0)
        driver.expectQuiet()
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
        let driver = CoreDriver { $0.perHost = 4 }
        let id = try driver.submit(download(4))
        let waiting = try driver.submit(url())
        #expect(driver.atWork == [id])
        _ = driver.ask(.cancel(id))
        #expect(driver.atWork == [waiting])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func retriedDownload_isGivenItsConnectionsAnew() throws {
        let driver = CoreDriver { $0.perHost = 4 }
        let id = try driver.submit(download(4, "a", #""retry":{"max":1,"initial":10,"jitter":false}"#))
        try driver.end(id, .failure(JobError(.network, "Broken.", retryable: true)))
        #expect(permits(driver) == 0)
        let other = try driver.submit(url())
        driver.advance(10)
        #expect(driver.atWork == [other, id])
        #expect(try driver.run(of: id).connections == 3)
        driver.endAll()
        driver.expectQuiet()
    }
}

extension SegmentTests {
    // MARK: Giving back

    @Test func download_givesBackOneConnection_forEachJobThatWaits() throws {
        let driver = CoreDriver { $0.perHost = 4 }
        let id = try driver.submit(download(4))
        let run = try driver.run(of: id).run
        #expect(driver.reclaimed.isEmpty)
        let first = try driver.submit(url())
        let second = try driver.submit(url())
        // One at a time, as the first that is closed may be enough.
        #expect(driver.reclaimed == [run])
        #expect(driver.atWork == [id])
        driver.feed(.connectionClosed(run))
        #expect(driver.atWork == [id, first])
        #expect(driver.reclaimed == [run, run])
        driver.feed(.connectionClosed(run))
        #expect(driver.atWork == [id, first, second])
        #expect(permits(driver) == 4)
        // What nobody asked for changes nothing.
        driver.feed(.connectionClosed(run))
        #expect(permits(driver) == 4)
        try driver.end(id)
        #expect(permits(driver) == 2)
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func download_keepsItsLastConnection() throws {
        let driver = CoreDriver { $0.perHost = 2 }
        let id = try driver.submit(download(2))
        let run = try driver.run(of: id).run
        let jobs = [try driver.submit(url()), try driver.submit(url())]
        driver.feed(.connectionClosed(run))
        #expect(driver.atWork == [id, jobs[0]])
        #expect(driver.reclaimed == [run])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func downloadThatEnds_givesBackTheRest_alsoThoseItWasAskedFor() throws {
        let driver = CoreDriver { $0.perHost = 3 }
        let id = try driver.submit(download(3))
        let run = try driver.run(of: id).run
        let waiting = try driver.submit(url())
        #expect(driver.reclaimed == [run])
        try driver.end(id)
        #expect(driver.atWork == [waiting])
        // The source closed it just before it ended.
        driver.feed(.connectionClosed(run))
        #expect(permits(driver) == 1)
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func download_keepsItsConnections_whileNobodyWaitsForThem() throws {
        let driver = CoreDriver { $0.perHost = 4 }
        _ = try driver.submit(download(4))
        let elsewhere = try driver.submit(url("b"))
        #expect(driver.reclaimed.isEmpty)
        try driver.end(elsewhere)
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func refusedConnection_holdsBackOtherJobs_whileTheDownloadGoesOn() throws {
        let driver = CoreDriver { $0.perHost = 4 }
        let id = try driver.submit(download(2))
        let run = try driver.run(of: id).run
        var error = JobError(.http, "Too many.", retryable: true)
        error.retryAfter = 30
        driver.feed(.refused(run, error))
        let waiting = try driver.submit(url())
        #expect(driver.atWork == [id])
        // It has all the time that the host asked for, so no connection would help.
        #expect(driver.reclaimed.isEmpty)
        driver.advance(29)
        #expect(driver.atWork == [id])
        driver.advance(1)
        #expect(driver.atWork == [id, waiting])
        driver.endAll()
        driver.expectQuiet()
    }
}
