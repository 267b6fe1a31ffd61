import JobModel
import JobProtocol
import Testing

@Suite struct JobNotificationTests {
    private func params(of line: [UInt8], _ method: String) throws -> JSONObject {
        #expect(line.last == UInt8(ascii: "\n") && line.filter { $0 == UInt8(ascii: "\n") }.count == 1)
        #expect(try JSON(parsing: line)["jsonrpc"] == "2.0")
        guard case .notification(method, let params) = try ServerMessage(line) else {
            Issue.record("no \(method)")
            return JSONObject()
        }
        return params
    }

    @Test func progress_hasTheMembersOfTheProtocol() throws {
        let progress = Progress(completed: 5, total: 10, rate: 2)
        var body = JSONWriter()
        JobNotification.writeProgress(link: 1, links: 3, progress, coalesced: 2, to: &body)
        let line = NotificationHead(.progress, watch: "w1").line(job: 1 << 53, seq: 4, body: body.bytes)
        let params = try params(of: line, "job.progress")
        #expect(params.names == ["watch", "job", "seq", "link", "links", "progress", "coalesced"])
        #expect(params["watch"] == "w1" && params["job"]?.description == "9007199254740992" && params["seq"] == 4)
        #expect(params["link"] == 1 && params["links"] == 3 && params["coalesced"] == 2)
        #expect(params["progress"]?.object?.names == ["completed", "total", "unit", "fraction", "rate", "eta"])
        #expect(params["progress"] == progress.json)
    }

    @Test(arguments: JobState.allCases)
    func state_hasTheMembersOfTheProtocol(_ state: JobState) throws {
        let snapshot: JSON = ["job": 7, "label": "a\nb\u{2028}\"\\", "result": nil]
        let body = JobNotification.state(state, snapshot: snapshot.utf8)
        for watch in ["w1", "w12"] {
            let params = try params(
                of: NotificationHead(.state, watch: watch).line(job: 7, seq: 1, body: body), "job.state")
            #expect(params.names == ["watch", "job", "seq", "state", "snapshot"])
            #expect(params["watch"] == .string(watch) && params["state"] == .string(state.rawValue))
            #expect(params["snapshot"] == snapshot)
        }
    }
}

extension NotificationHead {
    /// A line of its own, its end included.
    func line(job: JobID, seq: Int?, body: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: room + body.count) { line, count in
            guard let start = UnsafeMutableRawPointer(line.baseAddress) else { return }
            count = body.withUnsafeBytes { write(job: job, seq: seq, body: $0, to: start) } - start
        }
    }
}
