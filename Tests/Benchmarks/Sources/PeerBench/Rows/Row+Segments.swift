import Foundation
import Glibc

extension Row {
    /// The gain of eight connections for one file if the server limits each, and the cost if it does not.
    static var segments: Row {
        Row(name: "segments", title: "one file over eight connections") { bench in
            let size = 1 << 30
            let nginx = try Nginx(bench, largeSize: size)
            defer { nginx.stop() }
            for (name, path, bytes) in [
                ("limited", "limited.bin", Nginx.limitedSize), ("unlimited", "large.bin", size),
            ] {
                let url = "\(nginx.base)/\(path)"
                func fetch(_ segments: Int) throws -> Double {
                    try bench.warmMemory(bytes: bytes)
                    let daemon = try Deferd(bench, Deferd.Options(perHost: connections))
                    defer { daemon.stop() }
                    let source = #"{"type":"download","url":"\#(url)","path":"file","segments":\#(segments)}"#
                    let seconds = try Deferd.run([#"{"source":\#(source)}"#], over: daemon.watcher()).seconds
                    // An instance of the system, as root's is, has a directory for each user.
                    let written = ["", "/\(geteuid())"].lazy.compactMap { directory in
                        try? FileManager.default.attributesOfItem(atPath: daemon.downloads + directory + "/file")[.size]
                            as? Int
                    }.first
                    guard written == bytes else { throw BenchError("The file has \(written ?? 0) of \(bytes) bytes.") }
                    bench.delete(daemon.downloads)
                    return seconds
                }
                let samples = try bench.rounds(5, [{ try fetch(connections) }, { try fetch(1) }])
                bench.add(
                    "segments, \(name)", against: "deferd with one", unit: "s",
                    target: .atMost(name == "limited" ? 0.25 : 1.1), deferd: samples[0], peer: samples[1])
                guard name == "limited" else { continue }
                let others = try bench.rounds(
                    5,
                    [
                        {
                            let directory = try bench.inMemory()
                            defer { bench.delete(directory) }
                            return try Aria.start(url: url, connections: connections, directory: directory).succeed()
                                .wall
                        }
                    ])[0]
                bench.add(
                    "segments, \(name)", against: "aria2c -x\(connections) -s\(connections)", unit: "s",
                    target: .atMost(1), deferd: samples[0], peer: others)
            }
        }
    }

    private static let connections = 8
}
