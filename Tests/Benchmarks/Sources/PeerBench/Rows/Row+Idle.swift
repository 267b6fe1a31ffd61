import Foundation
import Glibc

extension Row {
    /// The work of an idle daemon, and the cost of 100,000 schedules while none of them is due.
    static var idle: Row {
        Row(name: "idle", title: "idle for 20 s, with and without 100,000 schedules") { bench in
            let state = try bench.onDisk()
            let first = try Deferd(bench, options, state: state)
            try fill(first)
            first.stop()
            var (samples, starts) = ([[(before: ProcessUse, after: ProcessUse)]](), [[Double]]())
            for _ in 0..<(bench.rounds ?? 3) {
                let full = try Deferd(bench, options, state: state)
                let empty = try Deferd(bench, options)
                let peer = try Beanstalkd(bench, .always)
                starts.append([full, empty].map { $0.startTime * 1000 })
                // Each has one client, which says nothing.
                let clients = [try full.connect(), try empty.connect(), try peer.connect()]
                let pids = [full.pid, empty.pid, peer.pid]
                // Until the work of the start has settled.
                sleep(10)
                let before = pids.map(ProcessUse.init)
                sleep(20)
                samples.append(zip(before, pids).map { ($0, ProcessUse(of: $1)) })
                withExtendedLifetime(clients) {}
                for stop in [full.stop, empty.stop, peer.stop] { stop() }
            }
            func add(
                _ name: String, against peer: String, unit: String, most: Double, _ first: Int, _ second: Int,
                _ value: (ProcessUse, ProcessUse) -> Double
            ) {
                bench.add(
                    name, against: peer, unit: unit, figure: .difference, target: .atMost(most),
                    deferd: samples.map { value($0[first].before, $0[first].after) },
                    peer: samples.map { value($0[second].before, $0[second].after) })
            }
            func switches(_ before: ProcessUse, _ after: ProcessUse) -> Double { Double(after.switches(since: before)) }
            let (schedules, without) = ("100,000 schedules", "itself without")
            add("idle, context switches", against: "beanstalkd", unit: "in 20 s", most: 2, 1, 2, switches)
            add("idle, CPU time", against: "beanstalkd", unit: "ms in 20 s", most: 10, 1, 2) {
                ($1.seconds - $0.seconds) * 1000
            }
            add("\(schedules), context switches", against: without, unit: "in 20 s", most: 2, 0, 1, switches)
            add("\(schedules), memory", against: without, unit: "MB", most: 100, 0, 1) { Double($1.resident) / 1e6 }
            bench.add(
                "\(schedules), start", against: without, unit: "ms", figure: .difference, target: .atMost(1000),
                deferd: starts.map { $0[0] }, peer: starts.map { $0[1] })
        }
    }

    private static let count = 100_000
    /// Calls on one connection set schedules one after another, so many schedules are set over several connections.
    private static let connections = 100

    private static func fill(_ daemon: Deferd) throws {
        let sockets = try (0..<connections).map { _ in try daemon.connect() }
        _ = try Load(sockets, depth: 4, requests: (0..<count).map(request), answer: Deferd.answer).run()
    }

    private static var options: Deferd.Options {
        var options = Deferd.Options()
        options.schedules = count
        return options
    }

    /// The line that sets a schedule of its own for each id, at minutes of a day in half a year.
    private static func request(_ number: Int) -> String {
        let month = (Calendar(identifier: .gregorian).component(.month, from: Date()) + 5) % 12 + 1
        let fields = [number % 60, number / 60 % 24, number % 28 + 1, month].map { $0 < 10 ? "0\($0)" : "\($0)" }
        let calendar = fields.joined(separator: " ") + " *"
        return
            #"{"jsonrpc":"2.0","id":\#(number),"method":"schedule.set","params":{"schedule":"s\#(number)","calendar":"\#(calendar)","#
            + #""spec":{"source":{"type":"url","url":"http://127.0.0.1:9/{{schedule/name}}"}}}}"# + "\n"
    }
}
