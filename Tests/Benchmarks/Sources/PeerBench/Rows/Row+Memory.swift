import Foundation
import Glibc

extension Row {
    /// Resident memory: idle, with a million waiting jobs, and with a thousand running ones.
    static var memory: Row {
        Row(name: "memory", title: "memory") { bench in
            let idle = try bench.rounds(5, [{ try resident(bench, Deferd(bench)) }])[0]
            bench.add(
                "memory, idle", against: "–", unit: "MB", figure: .own, target: .atMost(15), deferd: idle,
                peer: idle)

            let queued = try bench.rounds(
                1,
                [
                    {
                        let daemon = try Deferd(bench, Deferd.waiting)
                        try daemon.suspendQueue()
                        _ = try daemon.submissions(connections: 8).run(count: 1_000_000)
                        return try resident(bench, daemon)
                    }
                ])[0]
            bench.add(
                "memory, 1,000,000 queued", against: "itself idle", unit: "MB", figure: .difference,
                target: .atMost(40), deferd: queued, peer: queued.map { _ in Spread(idle).median })

            let nginx = try Nginx(bench)
            defer { nginx.stop() }
            let urls = (0..<running).map { "\(nginx.base)/slow/\($0)" }
            let samples = try bench.rounds(
                3,
                [
                    {
                        let daemon = try SlowDownloads.start(bench, urls: urls)
                        defer { bench.delete(daemon.downloads) }
                        return try resident(bench, daemon)
                    },
                    {
                        let directory = try bench.inMemory()
                        defer { bench.delete(directory) }
                        let aria = try Aria.start(urls: urls, parallel: running, directory: directory)
                        defer { aria.stop() }
                        sleep(10)
                        let files = try FileManager.default.contentsOfDirectory(atPath: directory)
                        guard files.count > running else {
                            throw BenchError("aria2 runs \(files.count - 1) downloads, not \(running).")
                        }
                        return Double(ProcessUse(of: aria.pid).resident) / 1e6
                    },
                ])
            bench.add(
                "memory, 1,000 running", against: "aria2 with as many", unit: "MB", target: .atMost(1),
                deferd: samples[0], peer: samples[1])
        }
    }

    private static let running = 1000

    /// Megabytes that are resident two seconds later; the daemon is stopped then.
    private static func resident(_ bench: Bench, _ daemon: Deferd) throws -> Double {
        defer { daemon.stop() }
        sleep(2)
        return Double(ProcessUse(of: daemon.pid).resident) / 1e6
    }
}
