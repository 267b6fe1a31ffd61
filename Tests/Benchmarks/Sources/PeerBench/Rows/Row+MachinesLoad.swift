import Glibc

/// What lies in the way of nodes: a snapshot that another session keeps, and jobs that no node may run.
extension Row {
    /// The speed of programs that do nothing. Most of these wait for a slot in the database first.
    private struct Speed {
        /// Jobs a second, with many under way.
        let rate: Double
        /// Microseconds from the submission of one alone to its end, the median.
        let latency: Double
    }

    private static let spec = #"{"source":{"type":"program","command":["/bin/true"]},"tags":["bench"]}"#
    private static let count = 3000

    private static var options: Deferd.Options {
        var options = Deferd.Options()
        options.runsAnyProgram = true
        return options
    }

    /// Keeps the daemon busy for this many seconds, and then measures.
    private static func speed(of daemon: Deferd, after seconds: Double) throws -> Speed {
        let specs = [String](repeating: spec, count: count)
        // A watch begins with all unfinished jobs, so it leaves out those of the absent node, and begins once.
        let watcher = try daemon.watcher(tag: "bench")
        let run = { try Deferd.run(specs, over: watcher) }
        let watch = Stopwatch()
        repeat { _ = try run() } while watch.seconds < seconds
        let rates = try (0..<3).map { _ in try run().rate }
        let client = try daemon.connect()
        let times = try (0..<300).map { _ in
            let watch = Stopwatch()
            let answer = try client.ask(Deferd.request("1", spec: spec))
            guard let job = answer.firstMatch(of: /"job":([0-9]+)/)?.1 else {
                throw BenchError("The daemon answered \(answer)")
            }
            _ = try client.ask(#"{"jsonrpc":"2.0","id":2,"method":"job.wait","params":{"job":\#(job)}}"# + "\n")
            return watch.seconds * 1e6
        }
        return Speed(rate: Spread(rates).median, latency: Spread(times).median)
    }

    private static func add(_ bench: Bench, _ name: String, _ samples: [[Speed]], _ least: Double, _ most: Double) {
        bench.add(
            "\(name), rate", against: "itself without", unit: "jobs/s", target: .atLeast(least),
            deferd: samples[0].map(\.rate), peer: samples[1].map(\.rate))
        bench.add(
            "\(name), latency", against: "itself without", unit: "µs", target: .atMost(most),
            deferd: samples[0].map(\.latency), peer: samples[1].map(\.latency))
    }

    static func measureSnapshot(_ bench: Bench, _ server: PostgreSQLServer) throws {
        func speed(isPinned: Bool) throws -> Speed {
            let database = try server.makeDatabase()
            let daemon = try node(bench, server, database, options)
            // It tells the other one of each round.
            let second = try node(bench, server, database, named: "bob", options)
            defer { for daemon in [daemon, second] { daemon.stop() } }
            let pin = isPinned ? try server.pinSnapshot(of: database) : nil
            defer { if let pin { try? server.releaseSnapshot(pin) } }
            return try self.speed(of: daemon, after: bench.pinned)
        }
        let samples = try bench.rounds(1, [{ try speed(isPinned: true) }, { try speed(isPinned: false) }])
        add(bench, "machines, pinned snapshot", samples, 0.8, 1.2)
    }

    static func measureBoundJobs(_ bench: Bench, _ server: PostgreSQLServer) throws {
        let bound = 100_000
        let full = try server.makeDatabase()
        let daemon = try node(bench, server, full, options)
        let request = Deferd.request("1", spec: #"{"source":{"type":"value","value":1},"requires":{"node":"absent"}}"#)
        let requests = repeatElement(request, count: bound)
        _ = try Load([daemon.connect()], depth: 128, requests: requests, answer: Deferd.answer).run()
        daemon.stop()
        let empty = try server.makeDatabase()
        let samples = try bench.rounds(
            3,
            [full, empty].map { database in
                {
                    let daemon = try node(bench, server, database, options)
                    defer { daemon.stop() }
                    return try speed(of: daemon, after: 1)
                }
            })
        add(bench, "machines, \(bound) jobs of an absent node", samples, 0.8, 1.2)
    }
}
