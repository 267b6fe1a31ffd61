import JobClient
import JobModel
import Testing
import TestOrigin

/// The examples of JobClient's documentation, word for word, against the daemon; DeferredKit's DocCoverageTests check
/// that none is missing.
@Suite struct DocJobClientTests {
    /// Runs `body` with the daemon's socket and the URL of a file.
    private func run(_ body: @escaping @Sendable (_ socket: String, _ url: String) async throws -> Void) async throws {
        try await TestOrigin.run { origin in
            origin["/file"] = OriginResource(Array(repeating: 7, count: 100_000), etag: "\"1\"")
            try await Daemon.run { daemon in try await body(daemon.socket, origin.url("/file")) }
        }
    }

    @Test func overview_works() async throws {
        try await run { socket, url in
            try await JobClient.withConnection(path: socket) { client in
                let job = try await client.submit(JobClient.Spec(.url(url)))
                let finished = try await client.wait(job.id)
                print(finished.state, finished.result?["status"]?.int ?? 0)
            }
            try await JobClient.withConnection(path: socket) { client in
                let job = try await client.submit(JobClient.Spec(.url(url)))
                print(try await client.wait(job.id).state)
            }
            try await JobClient.withConnection(path: socket) { client in
                let jobs = try await client.list().jobs
                #expect(jobs.map(\.state) == ["succeeded", "succeeded"])
            }
        }
    }

    @Test func following_works() async throws {
        try await run { socket, url in
            let client = try await JobClient.connect(path: socket)
            let job = try await client.submit(
                ["source": ["type": "download", "url": .string(url), "path": "tool.tar.gz"]], watch: true)
            events: for try await event in client.notifications where event.job == job.id {
                switch event.change {
                case .progress(let progress, _, _, _): print(progress.fraction ?? 0)
                case .output: break
                case .state(let snapshot):
                    print(snapshot.state)
                    if snapshot.isFinished { break events }
                }
            }
            await client.close()
            let state = try await JobClient.withConnection(path: socket) { try await $0.get(job.id).state }
            #expect(state == "succeeded")
        }
    }

    @Test func results_work() async throws {
        try await run { socket, url in
            try await JobClient.withConnection(path: socket) { client in
                let job = try await client.submit(["source": ["type": "url", "url": .string(url)]])
                _ = try await client.wait(job.id)
                var size = 0
                for try await piece in client.result(of: job.id) { size += piece.bytes.count }
                print(size, "bytes")
                #expect(size == 100_000)
            }
        }
    }

    @Test func failures_work() async throws {
        try await run { socket, _ in
            try await JobClient.withConnection(path: socket) { client in
                do {
                    _ = try await client.submit(["source": ["type": "nothing"]])
                } catch let error as JobClientError where error.code == .rpc {
                    print(error.rpc?.code ?? 0, error.rpc?.data["pointer"]?.string ?? "", error.message)
                }
                let error = await #expect(throws: JobClientError.self) {
                    try await client.submit(["source": ["type": "nothing"]])
                }
                #expect(error?.rpc?.code == -32602)
                #expect(error?.rpc?.data["pointer"] == "/source/type")

                let first = try await client.submit(["key": "nightly", "source": ["type": "value", "value": 1]])
                let again = try await client.submit(["key": "nightly", "source": ["type": "value", "value": 1]])
                print(first.id == again.id, again.isCreated)
                #expect(first.id == again.id)
                #expect(first.isCreated && !again.isCreated)
            }
        }
    }
}
