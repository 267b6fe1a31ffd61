import Foundation
import Glibc
import JobClient
import JobModel
import Synchronization
import TestSupport

/// Three users at work for as long as their tasks are not cancelled.
final class Load: Sendable {
    private let sockets: UserSockets
    private let servers: SoakServers
    private let seed: UInt64
    private let latencies = Mutex<[Double]>([])
    private let finished = Atomic<Int>(0)
    private let ends = Mutex(Outcomes())
    /// The first few unexpected results.
    private let problems = Mutex<[String]>([])

    init(sockets: UserSockets, servers: SoakServers, seed: UInt64) {
        self.sockets = sockets
        self.servers = servers
        self.seed = seed
    }

    /// The honest user's measurements since the last call, and the number of jobs that have ended since.
    func collect() -> (latencies: [Double], finished: Int) {
        (
            latencies.withLock { values in
                defer { values = [] }; return values
            }, finished.exchange(0, ordering: .relaxed)
        )
    }

    var outcomes: Outcomes { ends.withLock(\.self) }

    var seenProblems: [String] { problems.withLock(\.self) }

    private func count(_ job: JobSnapshot) {
        finished.add(1, ordering: .relaxed)
        ends.withLock { $0.add(job) }
        if job.error?["kind"] == "internal" { problem("A job ended so: \(job.json)") }
    }

    private func maker() -> SpecMaker {
        SpecMaker(servers: servers, random: SeededGenerator(seed: seed &+ .random(in: 0...1 << 32)))
    }

    private func problem(_ text: String) {
        problems.withLock { if $0.count < 20 { $0.append(text) } }
    }

    /// Runs all users until the task is cancelled.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.repeated { try await self.beHonest() } }
            for number in 0..<3 {
                group.addTask { await self.repeated { try await self.doEverything(number) } }
                group.addTask { await self.repeated { try await self.askHostileServers(number) } }
                group.addTask { await self.repeated { try await self.keepSchedules(number) } }
            }
            group.addTask { await self.repeated { try await self.flood() } }
            group.addTask { await self.repeated { try await self.readHalf() } }
        }
    }

    /// Runs one session after the other; refused and closed connections are expected.
    private func repeated(_ session: () async throws -> Void) async {
        while !Task.isCancelled {
            do { try await session() } catch {
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
    }

    /// Runs `body` with a connection of a user's own.
    private func connected(_ user: Int, _ body: (JobClient) async throws -> Void) async throws {
        let client = try await sockets.client(of: user)
        do { try await body(client) } catch {
            await client.close()
            throw error
        }
        await client.close()
    }

    /// User 0, who runs one small job after the other and measures.
    private func beHonest() async throws {
        try await connected(0) { client in
            for number in 0..<500 where !Task.isCancelled {
                let start = ContinuousClock.now
                do {
                    let spec: JSON = ["source": ["type": "value", "value": JSON(number)], "queue": "honest"]
                    let job = try await client.wait(client.submit(spec).id, timeout: 10)
                    if job.result != JSON(number) { problem("The honest user's job ended so: \(job.json)") }
                    finished.add(1, ordering: .relaxed)
                } catch {
                    if !Task.isCancelled { problem("The honest user was refused: \(error)") }
                    throw error
                }
                let milliseconds = start.duration(to: .now) / .milliseconds(1)
                latencies.withLock { $0.append(milliseconds) }
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }

    /// Every kind of job and call, with watches that come and go with their connections.
    private func doEverything(_ user: Int) async throws {
        var maker = maker()
        try await connected(user) { client in
            let events = Task { for try await _ in client.notifications {} }
            defer { events.cancel() }
            let watch = try await client.watch(
                maker.random.chance(0.5) ? .all : .tag("chain"), interval: 0.1, children: true)
            for _ in 0..<15 where !Task.isCancelled {
                var jobs: [Int64] = []
                for _ in 0..<Int.random(in: 1...6, using: &maker.random) {
                    jobs.append(try await client.submit(maker.ordinary(), watch: maker.random.chance(0.2)).id)
                }
                if maker.random.chance(0.2) { _ = try? await client.change(maker.random.pick(jobs), .cancel) }
                _ = try await client.list(limit: 20)
                for job in try await client.wait(Array(Set(jobs)), timeout: 30) {
                    count(job)
                    if job.json["label"] == .string(SpecMaker.Kind.body.rawValue) { try await readBody(job, client) }
                    if job.state == "failed", maker.random.chance(0.2) {
                        _ = try? await client.change(job.id, .retry())
                    }
                    if maker.random.chance(0.3) { _ = try? await client.change(job.id, .remove) }
                }
            }
            try await client.unwatch(watch.id)
        }
    }

    /// A result too large for a job object is a body of its own. It goes with its job, which may be removed before its
    /// time where users have much.
    private func readBody(_ job: JobSnapshot, _ client: JobClient) async throws {
        guard job.isSucceeded else { return }
        if job.result?["spilled"] != true { problem("A body was not stored as one: \(job.json)") }
        var size = 0
        do { for try await piece in client.result(of: job.id) { size += piece.bytes.count } } catch {
            if error.rpc?.kind == "not-found" { return }
            throw error
        }
        if size != Behaviour.largeSize { problem("Of the body of job \(job.id) \(size) bytes came.") }
        ends.withLock { $0.add("reading of a body", .success) }
    }

    /// Schedules that submit by their times and by hand, are suspended, and go.
    private func keepSchedules(_ user: Int) async throws {
        let spec = maker().scheduled()
        try await connected(user) { client in
            for number in 0..<10 where !Task.isCancelled {
                let name = "s\(number % 3)"
                _ = try await client.setSchedule(name, ["every": 1, "spec": spec])
                // By hand, beside its times, of which the first comes meanwhile.
                count(try await client.wait(client.runSchedule(name), timeout: 30))
                try await Task.sleep(for: .milliseconds(1500))
                _ = try await client.setSchedule(name, isSuspended: true)
                let shown = try await client.schedule(name)
                if shown["submitted"]?.int ?? 0 > 0 { ends.withLock { $0.add("time of a schedule", .success) } }
                _ = try await client.setSchedule(name, isSuspended: false)
                _ = try await client.schedules()
                try await client.removeSchedule(name)
            }
        }
    }

    private func askHostileServers(_ user: Int) async throws {
        var maker = maker()
        try await connected(user) { client in
            for _ in 0..<20 where !Task.isCancelled {
                var jobs: [Int64] = []
                for _ in 0..<3 { jobs.append(try await client.submit(maker.hostile()).id) }
                let ended: [JobSnapshot]
                do { ended = try await client.wait(jobs, timeout: 60) } catch {
                    // Each has two attempts of a second and a half at most.
                    if (error as? JobClientError)?.rpc?.kind == "timeout" {
                        problem("Jobs \(jobs) outlive their timeouts.")
                    }
                    throw error
                }
                for job in ended { count(job) }
            }
        }
    }

    /// User 2, who submits many jobs at the highest priority.
    private func flood() async throws {
        let maker = maker()
        try await connected(2) { client in
            var jobs: [Int64] = []
            for number in 0..<300 where !Task.isCancelled {
                jobs.append(try await client.submit(maker.greedy(number)).id)
            }
            _ = try await client.wait(jobs, timeout: 60)
            finished.add(jobs.count, ordering: .relaxed)
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    /// User 1 also asks for much and reads little of it, or vanishes in the middle of a line.
    private func readHalf() async throws {
        let descriptor = try await sockets.descriptor(of: 1)
        defer { close(descriptor) }
        let lines = String(
            repeating: #"{"jsonrpc":"2.0","id":1,"method":"job.list","params":{"limit":200}}"# + "\n", count: 20)
        let bytes = Array((lines + #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"sour"#).utf8)
        _ = write(descriptor, bytes, bytes.count)
        try await Task.sleep(for: .milliseconds(300))
        var part = [UInt8](repeating: 0, count: 1000)
        _ = read(descriptor, &part, part.count)
    }
}
