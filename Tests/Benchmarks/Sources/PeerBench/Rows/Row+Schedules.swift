import Foundation
import Glibc

extension Row {
    /// The cost of 100,000 schedules while none of them is due: only their own times wake the daemon.
    static var schedules: Row {
        Row(name: "schedules", title: "100,000 schedules, idle for 20 s") { bench in
            var full: [(use: ProcessUse.Change, resident: Int)] = []
            var empty: [(use: ProcessUse.Change, resident: Int)] = []
            let state = try bench.directories.onDisk()
            let first = try Deferd(bench, options, state: state)
            try fill(first)
            first.stop()
            var starts: (full: [Double], empty: [Double]) = ([], [])
            for _ in 0..<(bench.settings.rounds ?? 3) {
                let daemon = try Deferd(bench, options, state: state)
                let other = try Deferd(bench, options)
                starts.full.append(daemon.startTime * 1000)
                starts.empty.append(other.startTime * 1000)
                // Both have one client, which says nothing.
                let clients = (try daemon.connect(), try other.connect())
                defer {
                    withExtendedLifetime(clients) {
                        daemon.stop(); other.stop()
                    }
                }
                // Until the work of the start has settled.
                sleep(10)
                let before = (try ProcessUse(of: daemon.pid), try ProcessUse(of: other.pid))
                sleep(20)
                let after = (try ProcessUse(of: daemon.pid), try ProcessUse(of: other.pid))
                full.append((after.0.since(before.0), after.0.resident))
                empty.append((after.1.since(before.1), after.1.resident))
            }
            bench.add(
                "100,000 schedules, context switches", against: "itself without", unit: "in 20 s",
                figure: .difference, target: .atMost(2), deferd: full.map { Double($0.use.switches) },
                peer: empty.map { Double($0.use.switches) })
            bench.add(
                "100,000 schedules, memory", against: "itself without", unit: "MB", figure: .difference,
                target: .atMost(100), deferd: full.map { Double($0.resident) / 1e6 },
                peer: empty.map { Double($0.resident) / 1e6 })
            bench.add(
                "100,000 schedules, start", against: "itself without", unit: "ms", figure: .difference,
                target: .atMost(1000), deferd: starts.full, peer: starts.empty)
            bench.note("of one owner, due in half a year; both at the same time, ten seconds after their start")
        }
    }

    private static let count = 100_000
    /// Calls on one connection set schedules one after another, so many schedules are set over several connections.
    private static let connections = 100

    private static func fill(_ daemon: Deferd) throws {
        let load = PipelinedLoad(
            connections: try (0..<connections).map { _ in try daemon.connect() }, depth: 4,
            requests: RequestBuffer(count: count, from: count, request), areShared: true, scanner: Deferd.answers)
        _ = try load.run(count: count)
    }

    private static var options: Deferd.Options {
        var options = Deferd.Options()
        options.schedules = count
        return options
    }

    /// The line that sets a schedule of its own for each id, at minutes of a day in half a year.
    private static func request(_ id: String) -> String {
        let number = Int(id) ?? 0
        let month = (Calendar(identifier: .gregorian).component(.month, from: Date()) + 5) % 12 + 1
        // All have the same length.
        let fields = [number % 60, number / 60 % 24, number % 28 + 1, month].map { $0 < 10 ? "0\($0)" : "\($0)" }
        let calendar = fields.joined(separator: " ") + " *"
        return
            #"{"jsonrpc":"2.0","id":\#(id),"method":"schedule.set","params":{"schedule":"s\#(id)","calendar":"\#(calendar)","#
            + #""spec":{"source":{"type":"url","url":"http://127.0.0.1:9/{{schedule/name}}"}}}}"# + "\n"
    }
}
