import ArgumentParser
import FakeDaemon
import JobClient
import JobModel
import Synchronization
import Testing

@testable import DeferctlCommands

/// The line of a notification that tells how `job` stands.
private func state(_ job: JobSnapshot, seq: Int) -> String {
    let params: JSON = [
        "watch": "w1", "job": JSON(Int(job.id)), "seq": JSON(seq), "state": .string(job.state), "snapshot": job.json,
    ]
    return "\(["jsonrpc": "2.0", "method": "job.state", "params": params] as JSON)\n"
}

private func watch(_ jobs: JobSnapshot...) -> JSON { ["watch": "w1", "jobs": .array(jobs.map(\.json))] }

@Suite struct FollowingTests {
    @Test func follow_goesOn_whenTheDaemonComesBack() async throws {
        let asked = Mutex<[JSON?]>([])
        let said = Mutex<[String]>([])
        let shown = Mutex<[String]>([])
        let first: @Sendable (FakeConnection) -> Void = { daemon in
            guard let call = daemon.call() else { return }
            asked.withLock { $0.append(call["params"]?["jobs"]) }
            daemon.answer(call, watch(job(1, "running"), job(2, "running")))
            // It dies with one of the jobs finished.
            daemon.send(state(job(2, "succeeded"), seq: 1))
        }
        let second: @Sendable (FakeConnection) -> Void = { daemon in
            if let call = daemon.call() { daemon.answer(call, [:]) }
            guard let call = daemon.call() else { return }
            asked.withLock { $0.append(call["params"]?["jobs"]) }
            daemon.answer(call, watch(job(1, "queued")))
            daemon.send(state(job(1, "running"), seq: 1) + state(job(1, "failed"), seq: 2))
            daemon.waitForEnd()
        }
        let jobs = try await FakeDaemon.with([first, second]) { path in
            try await JobClient.withConnection(path: path) { client in
                let connection = DaemonConnection(path: path) { text in said.withLock { $0.append(text) } }
                let follower = JobFollower(connection: connection) { event, _ in
                    guard case .state(let job) = event.change else { return }
                    shown.withLock { $0.append("\(job.id) \(job.state)") }
                }
                return try await follower.follow([1, 2], with: client).finished
            }
        }
        #expect(jobs.map(\.state) == ["failed", "succeeded"])
        #expect(asked.withLock { $0 } == [[1, 2], [1]])
        #expect(
            shown.withLock { $0 } == ["1 running", "2 running", "2 succeeded", "1 queued", "1 running", "1 failed"])
        #expect(
            said.withLock { $0 } == [
                "The daemon went away; waiting for it to come back.", "The daemon is back.",
            ])
    }

    @Test func follow_showsTheEnd_ofAJobThatEndedMeanwhile() async throws {
        struct Enough: Error {}
        let shown = Mutex<[String]>([])
        let first: @Sendable (FakeConnection) -> Void = { daemon in
            if let call = daemon.call() { daemon.answer(call, watch(job(1, "running"), job(2, "running"))) }
        }
        let second: @Sendable (FakeConnection) -> Void = { daemon in
            if let call = daemon.call() { daemon.answer(call, [:]) }
            if let call = daemon.call() { daemon.answer(call, watch(job(2, "running"))) }
            guard let call = daemon.call() else { return }
            #expect(call["method"] == "job.get" && call["params"]?["job"] == 1)
            daemon.answer(call, job(1, "failed").json)
            daemon.waitForEnd()
        }
        await #expect(throws: Enough.self) {
            try await FakeDaemon.with([first, second]) { path in
                try await JobClient.withConnection(path: path) { client in
                    let follower = JobFollower(connection: DaemonConnection(path: path) { _ in }) { event, _ in
                        guard case .state(let job) = event.change else { return }
                        shown.withLock { $0.append("\(job.id) \(job.state)") }
                        if job.isFinished { throw Enough() }
                    }
                    try await follower.follow(.tag("t"), with: client)
                }
            }
        }
        #expect(shown.withLock { $0 } == ["1 running", "2 running", "2 running", "1 failed"])
    }

    @Test func wait_remembersTheJobsOfAState_whenTheDaemonRestarts() async throws {
        let first: @Sendable (FakeConnection) -> Void = { daemon in
            guard let call = daemon.call() else { return }
            #expect(call["method"] == "job.list" && call["params"]?["state"] == ["running"])
            daemon.answer(call, ["jobs": [job(2, "running").json, job(1, "running").json]])
            _ = daemon.call()
        }
        let second: @Sendable (FakeConnection) -> Void = { daemon in
            if let call = daemon.call() { daemon.answer(call, [:]) }
            guard let call = daemon.call() else { return }
            #expect(call["method"] == "job.wait" && call["params"]?["jobs"] == [2, 1])
            daemon.answer(call, ["jobs": [job(2, "succeeded").json, job(1, "failed").json]])
            daemon.waitForEnd()
        }
        let command: WaitCommand = try #require(
            try DeferctlCommand.parseAsRoot(["wait", "--tag", "t", "--state", "running"]) as? WaitCommand)
        let status = try await FakeDaemon.with([first, second]) { path in
            try await command.perform(
                Invocation(socket: DaemonSocket(flag: path), writesJSON: false, console: Console()))
        }
        #expect(status == .jobFailed)
    }

    @Test(arguments: [["1"], ["--state", "running"]]) func wait_readsNoLongResults_whenItPrintsStates(
        jobs: [String]
    ) async throws {
        let asked = Mutex<[String?]>([])
        let command = try #require(try DeferctlCommand.parseAsRoot(["wait"] + jobs) as? WaitCommand)
        let status = try await FakeDaemon.with { daemon in
            while let call = daemon.call() {
                asked.withLock { $0.append(call["method"]?.string) }
                daemon.answer(call, ["jobs": [job(1, "succeeded", ["resultSize": 5_000_000]).json]])
            }
        } _: { path in
            try await command.perform(
                Invocation(socket: DaemonSocket(flag: path), writesJSON: false, console: Console()))
        }
        #expect(status == .ok && !asked.withLock { $0 }.contains("job.result"))
    }

    @Test func keeping_endsInTime_whenTheDaemonStaysAway() async throws {
        let failure = try await FakeDaemon.with { daemon in
            _ = daemon.call()
        } _: { path in
            try await JobClient.withConnection(path: path) { client in
                let connection = DaemonConnection(path: path, deadline: .now) { _ in }
                return await #expect(throws: CommandFailure.self) {
                    _ = try await connection.keeping(client) { try await $0.wait([1], timeout: 0) }
                }
            }
        }
        #expect(failure?.status == .tryAgain)
    }

    @Test func follow_asksNothingMore_whenAllJobsWereFinished() async throws {
        let jobs = try await FakeDaemon.with { daemon in
            if let call = daemon.call() { daemon.answer(call, watch(job(1, "succeeded"))) }
            daemon.waitForEnd()
        } _: { path in
            try await JobClient.withConnection(path: path) { client in
                let connection = DaemonConnection(path: path) { _ in }
                return try await JobFollower(connection: connection) { _, _ in }.follow([1, 1], with: client).finished
            }
        }
        #expect(jobs.map(\.id) == [1, 1])
    }

    /// Refuses `call`, as there is no such job.
    private static func refuse(_ call: JSON, on daemon: FakeConnection) {
        daemon.send(
            #"{"jsonrpc":"2.0","id":\#(call["id"] ?? .null),"error":{"code":-32001,"message":"No.","data":"#
                + #"{"kind":"not-found"}}}"# + "\n")
    }

    @Test func follow_goesOnWithTheOthers_whereJobsAreNotThere() async throws {
        let said = Mutex<[String]>([])
        let ending = try await FakeDaemon.with { daemon in
            // All of them together, and then each by itself.
            for _ in 0...3 {
                guard let call = daemon.call() else { return }
                if call["params"]?["job"] == 2 {
                    daemon.answer(call, job(2, "running").json)
                } else {
                    Self.refuse(call, on: daemon)
                }
            }
            guard let call = daemon.call() else { return }
            #expect(call["params"]?["jobs"] == [2])
            daemon.answer(call, watch(job(2, "running")))
            daemon.send(state(job(2, "succeeded"), seq: 1))
            daemon.waitForEnd()
        } _: { path in
            try await JobClient.withConnection(path: path) { client in
                let connection = DaemonConnection(path: path) { text in said.withLock { $0.append(text) } }
                return try await JobFollower(connection: connection) { _, _ in }.follow([3, 2, 1, 3], with: client)
            }
        }
        #expect(ending.finished.map(\.id) == [2] && ending.missing == [.badData, .badData])
        #expect(said.withLock { $0 } == ["No.", "No."])
    }

    @Test func follow_watchesSeveralTimes_whenThereAreMoreJobsThanInAWatch() async throws {
        let asked = Mutex<[Int]>([])
        let all = (1...10_001).map(Int64.init)
        let finished = try await FakeDaemon.with { daemon in
            while let call = daemon.call() {
                let ids = call["params"]?["jobs"]?.array ?? []
                asked.withLock { $0.append(ids.count) }
                let jobs = ids.compactMap(\.int).map { job(Int64($0), "succeeded").json }
                daemon.answer(call, ["watch": "w1", "jobs": .array(jobs)])
            }
        } _: { path in
            try await JobClient.withConnection(path: path) { client in
                let connection = DaemonConnection(path: path) { _ in }
                return try await JobFollower(connection: connection) { _, _ in }.follow(all, with: client).finished
            }
        }
        #expect(finished.map(\.id) == all)
        #expect(asked.withLock { $0 } == [10_000, 1])
    }
}

@Suite struct BulkSubmissionTests {
    /// What is said of the specs in `text`, when the daemon does `serve`.
    private func submit(
        _ text: String, to serve: @escaping @Sendable (FakeConnection) -> Void
    ) async throws -> (status: Status, jobs: [Int64], said: [String]) {
        let file = try TemporaryFile(Array(text.utf8))
        let said = Mutex<[String]>([])
        let (status, jobs) = try await FakeDaemon.with(serve) { path in
            try await JobClient.withConnection(path: path) { client in
                try await BulkSubmission(
                    client: client, accept: { job in said.withLock { $0.append("job \(job.id)") } },
                    refuse: { text in said.withLock { $0.append(text) } }
                ).run(SpecDocuments(argument: file.path))
            }
        }
        return (status, jobs, said.withLock { $0 })
    }

    /// Answers a submission: accepted under the id in its spec, or refused where that is 0.
    private static func answer(_ call: JSON, on daemon: FakeConnection, code: Int = -32602) {
        let number = call["params"]?["n"] ?? 0
        if number != 0 { return daemon.answer(call, ["job": number, "state": "queued", "created": true]) }
        daemon.send(
            #"{"jsonrpc":"2.0","id":\#(call["id"] ?? .null),"error":{"code":\#(code),"message":"No\u001b."}}"# + "\n")
    }

    @Test func run_tellsOutcomesInTheOrderOfTheSpecs_whateverTheOrderOfAnswers() async throws {
        let outcome = try await submit("{\"n\":1}\n{\"n\":0}\nx\n{\"n\":4}\n") { daemon in
            for call in daemon.calls(3).reversed() { Self.answer(call, on: daemon) }
            daemon.waitForEnd()
        }
        #expect(outcome.status == .badData)
        #expect(outcome.jobs == [1, 4])
        #expect(
            outcome.said.map { $0.split(separator: ": ").dropFirst().joined(separator: ": ") } == [
                "", "No\\x1b.", "The spec is not JSON: line 3, column 1: expected a value, found `x`.", "",
            ])
    }

    @Test func run_submitsAll_whenThereAreMoreThanItsWindow() async throws {
        let count = BulkSubmission.window + 50
        let early = Mutex<Int>(0)
        let text = (1...count).map { "{\"n\":\($0)}\n" }.joined()
        let outcome = try await submit(text) { daemon in
            let calls = daemon.calls(BulkSubmission.window)
            early.withLock { $0 = calls.count }
            for call in calls { Self.answer(call, on: daemon) }
            while let call = daemon.call() { Self.answer(call, on: daemon) }
        }
        #expect(early.withLock { $0 } == BulkSubmission.window)
        #expect(outcome.jobs == (1...count).map(Int64.init))
        #expect(outcome.status == .ok)
    }

    @Test func run_stops_whenTheDaemonTakesNothingMore() async throws {
        let text = String(repeating: "{\"n\":0}\n", count: BulkSubmission.window + 50)
        let outcome = try await submit(text) { daemon in
            for call in daemon.calls(BulkSubmission.window) { Self.answer(call, on: daemon, code: -32003) }
            daemon.waitForEnd()
        }
        #expect(outcome.status == .tryAgain)
        #expect(outcome.said == ["line 1: No\\x1b."])
    }

    @Test func run_saysThatNothingIsKnown_whenTheDaemonGoesAway() async throws {
        let outcome = try await submit("{\"n\":1}\n") { daemon in
            _ = daemon.call()
        }
        #expect(outcome.status == .unreachable)
        #expect(outcome.said.first?.contains("the job may or may not exist") == true)
        let several = try await submit("{\"n\":1}\n{\"n\":2}\nx\n{\"n\":4}\n") { daemon in
            if let call = daemon.calls(3).first { Self.answer(call, on: daemon) }
        }
        #expect(several.status == .unreachable && several.said.count == 3)
        #expect(several.said.first == "job 1")
        #expect(several.said.last?.hasPrefix("line 2 to line 4: The daemon closed the connection") == true)
    }
}
