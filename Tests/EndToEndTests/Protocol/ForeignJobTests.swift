import Foundation
import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// The answers for another user's job, schedule or key are, byte for byte, those for one that never existed and for one
/// that was removed.
@Suite(.enabled(if: User.canBeOthers, "being several users needs root")) struct ForeignJobTests {
    /// Runs `body` with a daemon that every user may connect to, and a server that answers `/body` only.
    private func share(_ body: (Daemon, GuidedOrigin) async throws -> Void) async throws {
        let rule: GuidedOrigin.Rule = { request, _ in
            request.path == "/body" ? .whole(Sample.content, etag: "\"1\"") : nil
        }
        try await GuidedOrigin.withHousehold(rule) { origin, household in
            chmod(household.directory.path, 0o711)
            let daemon = try await household.start(
                configuration: "socket: {mode: \"0666\"}\nqueues: {slow: {concurrency: 1}}\n"
                    + "programs: {say: {command: [/bin/echo, said]}}\n")
            try await body(daemon, origin)
            try await daemon.stop()
        }
    }

    // MARK: - Jobs

    @Test func foreignJob_isAnsweredLikeNoJob_byEveryMethodInEveryState() async throws {
        try await share { daemon, origin in
            let (ann, bob) = (try User.ann.connect(to: daemon), try User.bob.connect(to: daemon))
            // From here on an id has three digits, so that no other number in an answer is taken for one.
            _ = try await bob.succeed([
                "source": ["type": "list", "jobs": .array([JSON](repeating: .value(1), count: 100))]
            ])
            let foreign = try await AnnsJobs(ann, origin)
            let own = try await OwnJobs(bob)
            let (bobsGone, annsGone) = (try await gone(bob), try await gone(ann))

            let hearing = try User.bob.connect(to: daemon)
            _ = try await hearing.call("job.watch", ["all": true, "children": true, "interval": 0.01])
            _ = try await hearing.call("job.watch", ["tag": "t", "children": true, "interval": 0.01])
            let before = try await foreign.objects(ann)

            let never = try await answers(bob, about: 900, own)
            let refusals = ["-32001", "-32602", "\"count\":0"]
            #expect(never.values.allSatisfy { answer in refusals.contains { answer.contains($0) } }, "\(never)")
            for id in [bobsGone, annsGone] { expectEqual(try await answers(bob, about: id, own), never, "removed") }
            for (state, id) in foreign.jobs { expectEqual(try await answers(bob, about: id, own), never, state) }

            // Nor does a call without an answer do anything.
            for (_, id) in foreign.jobs {
                for method in ["cancel", "retry", "remove", "watch", "wait"] {
                    bob.sendLine(#"{"jsonrpc": "2.0", "method": "job.\#(method)", "params": {"job": \#(id)}}"#)
                }
            }
            _ = try await bob.call("job.get", .job(own.open))
            #expect(try await foreign.objects(ann) == before, "they are unchanged")
            // And the client is not told about later changes.
            try await foreign.endAll(ann)
            for wire in [bob, hearing] {
                _ = try await wire.call("job.get", .job(own.open))
                #expect(wire.waiting.isEmpty, "\(wire.waiting)")
            }
            #expect(try await bob.call("job.get", .job(own.open))["state"] == "running")
        }
    }

    /// A job that was and was removed.
    private func gone(_ wire: Wire) async throws -> Int {
        let job = try await wire.submit(.value(1))
        _ = try await wire.wait(job)
        _ = try await wire.call("job.remove", .job(job))
        return job
    }

    /// Ann's jobs: waiting, running and finished ones, children, and the three kinds of results that are stored apart.
    private struct AnnsJobs {
        let jobs: [(state: String, id: Int)]

        init(_ ann: Wire, _ origin: GuidedOrigin) async throws {
            var jobs: [(state: String, id: Int)] = []
            func add(_ state: String, _ spec: JSON, ends: Bool = false, children count: Int = 0) async throws {
                let job = try await ann.submit(spec.with(["tags": ["t"]]))
                if ends { _ = try await ann.wait(job) }
                jobs.append((state, job))
                var children: [JSON] = []
                repeat {
                    children = try await ann.call("job.list", ["parent": JSON(job)])["jobs"]?.array ?? []
                } while children.count < count
                for child in children.compactMap({ $0["job"]?.int }) { jobs.append(("child of \(state)", child)) }
            }
            try await add("running", .fetch(origin.url("/waits"), ["queue": "slow"]))
            _ = try await origin.exchange("/waits")
            try await add("delayed", .value(1, ["delay": 1000]))
            try await add("succeeded", .value("secret", ["key": "k"]), ends: true)
            try await add("failed", .failure(), ends: true)
            let list: JSON = ["source": ["type": "list", "jobs": [.timer(1000), .value(1, ["delay": 1000])]]]
            try await add("list", list, children: 2)
            try await add("long result", .value(.string(String(repeating: "x", count: 900_000))), ends: true)
            try await add("body in a file", .fetch(origin.url("/body")), ends: true)
            try await add("program", ["source": ["type": "program", "program": "say"]], ends: true)
            #expect(jobs.count { $0.state.hasPrefix("child") } == 2, "\(jobs)")
            self.jobs = jobs
        }

        /// The objects as their owner sees them; the progress of a timer changes by itself.
        func objects(_ ann: Wire) async throws -> [JSON] {
            var objects: [JSON] = []
            for (_, id) in jobs {
                var object = try await ann.call("job.get", .job(id)).object
                object?["progress"] = nil
                objects.append(.object(try #require(object)))
            }
            return objects
        }

        /// Retries, cancels and removes them.
        func endAll(_ ann: Wire) async throws {
            for (state, id) in jobs where !state.hasPrefix("child") {
                if state == "failed" { _ = try await ann.call("job.retry", .job(id)) }
                if try await ann.call("job.get", .job(id))["finishedAt"] == nil {
                    // A retried job may end before.
                    _ = try? await ann.call("job.cancel", .job(id))
                    _ = try await ann.wait(id)
                }
                _ = try await ann.call("job.remove", .job(id))
            }
        }
    }

    /// Bob's jobs: a finished one and an unfinished one.
    private struct OwnJobs {
        let over: Int
        let open: Int

        init(_ bob: Wire) async throws {
            over = try await bob.submit(.value(1))
            open = try await bob.submit(.timer(1000))
            _ = try await bob.wait(over)
        }
    }

    /// Every way to name a job, by method.
    private func calls(about id: Int, _ own: OwnJobs) -> [(method: String, params: JSON)] {
        let (job, over, open) = (JSON(id), JSON(own.over), JSON(own.open))
        let pairs: [JSON] = [
            [job], [over, job], [job, over], [open, job], [job, open], [over, open, job, 901], [job, job],
        ]
        var calls: [(method: String, params: JSON)] = []
        for method in [
            "get", "cancel", "retry", "remove", "hold", "release", "set", "result", "output", "wait", "watch",
        ] {
            calls.append(("job.\(method)", ["job": job]))
            calls.append(("job.\(method)", ["job": job, "unknown": 1]))
        }
        calls.append(("job.set", ["job": job, "priority": 1]))
        for method in ["cancel", "hold", "release", "remove"] {
            calls.append(("job.\(method)", ["jobs": [job]]))
            calls.append(("job.\(method)", ["select": ["ids": [job, job]]]))
        }
        for from in ["failed", "start", "nowhere"] { calls.append(("job.retry", ["job": job, "from": .string(from)])) }
        for offset in [0, 5, 1 << 40] {
            calls.append(("job.result", ["job": job, "offset": JSON(offset), "length": 0]))
            calls.append(("job.result", ["job": job, "offset": JSON(offset), "length": 10]))
        }
        for members in [["link": 0], ["attempt": 1], ["offset": 3], ["wait": 5], ["link": 7, "wait": 5]] as [JSON] {
            calls.append(("job.output", members.with(["job": job])))
        }
        for filter in [
            [:], ["after": job], ["state": ["running"]], ["tag": "t"], ["queue": "slow", "limit": 1],
            ["source": "timer", "order": "oldest"],
        ] as [JSON] {
            calls.append(("job.list", filter.with(["parent": job])))
        }
        for jobs in pairs {
            calls.append(("job.wait", ["jobs": jobs]))
            calls.append(("job.wait", ["jobs": jobs, "timeout": 0]))
            // Naming a job twice is not an error there; the job is rejected.
            calls.append(("job.watch", ["jobs": jobs]))
            calls.append(("job.watch", ["jobs": jobs, "children": true, "interval": 0.01]))
        }
        calls.append(("job.wait", ["job": job, "timeout": 0]))
        calls.append(("job.watch", ["job": job, "children": true]))
        // Watches have numbers of their own, which tell of no jobs.
        calls.append(("job.unwatch", ["watch": .string("-\(id)")]))
        return calls
    }

    /// The answers to all of ``calls(about:_:)`` as they came, with "ID" in place of the id; and to all in one batch.
    private func answers(_ wire: Wire, about id: Int, _ own: OwnJobs) async throws -> [String: String] {
        func placeholder(_ text: String) throws -> String {
            // A comma between digits ends a number here.
            text.replacing(try Regex("\\b\(id)\\b").wordBoundaryKind(.simple), with: "ID")
        }
        var answers: [String: String] = [:]
        var batch: [JSON] = []
        for (method, params) in calls(about: id, own) {
            let call: JSON = ["jsonrpc": "2.0", "id": "call", "method": .string(method), "params": params]
            wire.sendLine("\(call)")
            let answer = try await wire.next("answer to \(call)") { $0.id == "call" }
            answers[try placeholder("\(method) \(params)")] = try placeholder(answer.text)
            batch.append(call)
        }
        wire.sendLine("\(JSON.array(batch))")
        let all = try await wire.next("answers to the batch") { $0.json.array != nil }
        // Waits are answered when their jobs end, so the answers of a batch have no order.
        answers["batch"] = try (all.json.array ?? []).map { try placeholder("\($0)") }.sorted().joined(separator: "\n")
        #expect(wire.waiting.isEmpty, "\(wire.waiting)")
        return answers
    }

    private func expectEqual(_ answers: [String: String], _ never: [String: String], _ state: String) {
        #expect(answers.count == never.count)
        for (call, answer) in answers where answer != never[call] {
            Issue.record("\(state): \(call)\n\(answer)\n\(never[call] ?? "nothing")")
        }
    }

    /// A method that this suite does not know might tell something.
    @Test func everyMethod_isLookedAtHere() async throws {
        try await share { daemon, _ in
            let bob = try User.bob.connect(to: daemon)
            let own = try await OwnJobs(bob)
            let looked =
                Set(calls(about: 900, own).map(\.method)).union(Self.scheduleCalls("a").map(\.method))
                .union(Self.views.map(\.method))
                // Keys have their own test; the result of a spec names no job; usage is one's own; nodes have
                // no jobs; the rest is for administrators.
                .union(["job.submit", "job.explain", "server.usage", "server.nodes", "queue.set", "server.backup"])
            let methods = try await bob.call("server.info")["methods"]?.array?.compactMap(\.string) ?? []
            #expect(looked == Set(methods))
        }
    }

    // MARK: - Schedules

    /// Every way to name a schedule.
    private static func scheduleCalls(_ name: String) -> [(method: String, params: JSON)] {
        let schedule = JSON.string(name)
        var calls: [(method: String, params: JSON)] = []
        for method in ["get", "run", "suspend", "resume", "remove"] {
            calls.append(("schedule.\(method)", ["schedule": schedule]))
            calls.append(("schedule.\(method)", ["schedule": schedule, "owner": 64_001]))
        }
        calls.append(
            ("schedule.set", ["schedule": schedule, "owner": 64_001, "every": 1000, "spec": .value(1)]))
        for after in [".string", "64001/\(name)", "64002/\(name)", "0/\(name)", "64003/\(name)"] {
            calls.append(("schedule.list", ["after": .string(after)]))
            calls.append(("schedule.list", ["after": .string(after), "owner": 64_001]))
            calls.append(("schedule.list", ["after": .string(after), "owner": 64_002, "limit": 1]))
        }
        calls.append(("schedule.list", ["owner": 64_001]))
        return calls
    }

    @Test func foreignSchedule_isAnsweredLikeNone_byEveryMethod() async throws {
        try await share { daemon, _ in
            let (ann, bob) = (try User.ann.connect(to: daemon), try User.bob.connect(to: daemon))
            for name in ["runs", "rests", "gone"] {
                let set: JSON = ["schedule": .string(name), "every": 1000, "spec": .value(1)]
                _ = try await ann.call("schedule.set", set.with(["suspended": .bool(name == "rests")]))
                _ = try await ann.wait(ann.call("schedule.run", ["schedule": .string(name)])["job"]?.int ?? 0)
            }
            _ = try await ann.call("schedule.remove", ["schedule": "gone"])
            // After and before those names.
            for name in ["a", "zz"] {
                _ = try await bob.call("schedule.set", ["schedule": .string(name), "every": 1000, "spec": .value(1)])
            }
            let before = try await ann.call("schedule.list")
            var answers: [String: [String]] = [:]
            for name in ["never", "gone", "runs", "rests"] {
                for (method, params) in Self.scheduleCalls(name) {
                    bob.sendLine(#"{"jsonrpc":"2.0","id":"call","method":"\#(method)","params":\#(params)}"#)
                    let answer = try await bob.next("answer to \(method)") { $0.id == "call" }
                    let call = "\(method) \(params)".replacing(name, with: "NAME")
                    answers[call, default: []].append(answer.text.replacing("\"\(name)\\\"", with: "\"NAME\\\""))
                }
            }
            #expect(answers.count == Self.scheduleCalls("never").count)
            for (call, texts) in answers {
                #expect(texts.count == 4 && Set(texts).count == 1, "\(call): \(texts)")
            }
            #expect(try await ann.call("schedule.list") == before, "they are unchanged")
        }
    }

    // MARK: - Keys and views

    /// What a user sees without naming any job.
    private static let views: [(method: String, params: JSON)] = [
        ("server.info", [:]), ("server.stats", [:]), ("queue.list", [:]), ("job.list", [:]), ("schedule.list", [:]),
    ]

    @Test func views_stayTheSame_whateverOthersDo() async throws {
        try await share { daemon, origin in
            let bob = try User.bob.connect(to: daemon)
            let own = try await OwnJobs(bob)
            _ = try await bob.submit(.value(1, ["delay": 1000, "queue": "slow"]))
            _ = try await bob.call("schedule.set", ["schedule": "own", "every": 1000, "spec": .value(1)])
            func views() async throws -> [String: JSON] {
                var views: [String: JSON] = [:]
                for (method, params) in Self.views {
                    var view = try await bob.call(method, params).object
                    view?["uptime"] = nil
                    // How far the timer has come.
                    let jobs = view?["jobs"]
                    view?["jobs"] = jobs.map(Self.withoutProgress)
                    views[method] = .object(try #require(view))
                }
                return views
            }
            let before = try await views()
            let ann = try User.ann.connect(to: daemon)
            _ = try await ann.call("job.watch", ["all": true])
            let foreign = try await AnnsJobs(ann, origin)
            #expect(try await views() == before)
            try await foreign.endAll(ann)
            #expect(try await views() == before)
            #expect(try await bob.call("job.get", .job(own.open))["state"] == "running")
        }
    }

    private static func withoutProgress(_ jobs: JSON) -> JSON {
        guard let all = jobs.array else { return jobs }
        return .array(
            all.map { job in
                var job = job.object
                job?["progress"] = nil
                return job.map(JSON.object) ?? .null
            })
    }

    @Test func foreignKey_isAnsweredLikeANewOne() async throws {
        try await share { daemon, _ in
            let (ann, bob) = (try User.ann.connect(to: daemon), try User.bob.connect(to: daemon))
            _ = try await ann.submit(.timer(1000, ["key": "open"]))
            _ = try await ann.succeed(.value(1, ["key": "over"]))
            _ = try await ann.run(.failure("invalid", ["key": "failed"]))
            for key in ["never", "open", "over", "failed"] {
                // The same spec as Ann's of one of them, another, and again.
                var told: [JSON] = []
                var ids: [Int?] = []
                for spec in [JSON.value(1, ["delay": 1000]), .value(1, ["delay": 1000]), .timer(1000)] {
                    let id = bob.send("job.submit", spec.with(["key": .string(key)]))
                    var answer = try await bob.answer(JSON(id)).object
                    answer?["id"] = nil
                    ids.append(answer?["result"]?["job"]?.int ?? answer?["error"]?["data"]?["job"]?.int)
                    told.append(.object(try #require(answer)))
                }
                let id = try #require(ids[0])
                #expect(ids == [id, id, id], "\(key)")
                #expect(told[0]["result"] == ["job": JSON(id), "state": "scheduled", "created": true], "\(key)")
                #expect(told[1]["result"] == ["job": JSON(id), "state": "scheduled", "created": false], "\(key)")
                #expect(told[2]["error"]?["code"] == -32006, "\(key)")
                #expect(try await bob.call("job.get", .job(id))["owner"] == 64_002)
            }
            // Also where all of it is the same.
            for (key, spec) in [("open", JSON.timer(1000)), ("over", .value(1)), ("failed", .failure())] {
                let wire = try User(uid: 64_003, groups: [64_003]).connect(to: daemon)
                #expect(
                    try await wire.call("job.submit", spec.with(["key": .string(key)]))["created"] == true, "\(key)")
            }
        }
    }
}
