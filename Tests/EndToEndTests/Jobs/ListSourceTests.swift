import JobModel
import TestOrigin
import Testing

/// Lists, `each` and races.
@Suite struct ListSourceTests {
    private func list(_ jobs: [JSON], _ more: [String: JSON] = [:]) -> JSON {
        let source: JSON = ["type": "list", "jobs": .array(jobs)]
        return ["source": source.with(more)]
    }

    /// Sums of sizes from servers must not end the daemon.
    @Test(arguments: [
        [Int64.max, Int64.max], [1 << 62, 1 << 62, 1 << 62], [Int64.max, 10],
    ])
    func listsProgress_staysANumber_whenItsDownloadsAnnounceTooMuch(_ lengths: [Int64]) async throws {
        // Without the check of the free space, which would refuse them.
        try await GuidedOrigin.withDaemon(configuration: "downloads: {minimumFree: 0}") { origin, _, wire in
            let jobs = lengths.indices.map { index in
                JSON.download(origin.url("/\(index)"), to: "file-\(index)", retry: ["max": 0])
            }
            _ = try await wire.call("job.watch", ["all": true, "children": true, "interval": 0.01])
            let id = try await wire.submit(list(jobs))
            for (index, length) in lengths.enumerated() {
                let exchange = try await origin.exchange("/\(index)")
                exchange.sendHead("200 OK", [("Content-Length", "\(length)")])
                exchange.send([1, 2, 3])
                _ = try await wire.next("progress of \(length) bytes") { line in
                    line.method == "job.progress" && line.job != id || line.state == "failed"
                }
            }
            let progress = try await wire.call("job.get", .job(id))["progress"]
            if progress?["unit"] == "bytes" { #expect(progress?["completed"]?.int ?? -1 >= 0) }
            _ = try await wire.call("job.cancel", .job(id))
            #expect(try await wire.wait(id)["state"] == "cancelled")
        }
    }
}
