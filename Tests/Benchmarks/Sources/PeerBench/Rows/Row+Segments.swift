import Foundation
import Glibc

extension Row {
    /// The gain of eight connections for one file if the server limits each, and the cost if it does not.
    static var segments: Row {
        Row(name: "segments", title: "one file over eight connections") { bench in
            let size = 1 << 30
            let nginx = try Nginx(bench, largeSize: size)
            defer { nginx.stop() }
            for (name, path, bytes, isLimited) in [
                ("limited", "limited.bin", Nginx.limitedSize, true), ("unlimited", "large.bin", size, false),
            ] {
                let url = "\(nginx.base)/\(path)"
                func fetch(_ segments: Int) throws -> Double {
                    try bench.directories.warmMemory(bytes: bytes)
                    let daemon = try Deferd(bench, Deferd.Options(perHost: connections))
                    defer { daemon.stop() }
                    let watcher = try JobWatcher(daemon)
                    let source = #"{"type":"download","url":"\#(url)","path":"file","segments":\#(segments)}"#
                    let seconds = try watcher.run(specs: [#"{"source":\#(source)}"#], depth: 1).seconds
                    // An instance of the system, as root's is, has a directory for each user.
                    let written = ["", "/\(geteuid())"].lazy.compactMap { directory in
                        try? FileManager.default.attributesOfItem(atPath: daemon.downloads + directory + "/file")[.size]
                            as? Int
                    }.first
                    guard written == bytes else { throw BenchError("The file has \(written ?? 0) of \(bytes) bytes.") }
                    bench.directories.delete(daemon.downloads)
                    return seconds
                }
                let samples = try bench.rounds(
                    5,
                    [
                        { try fetch(connections) },
                        { try fetch(1) },
                        {
                            try bench.directories.warmMemory(bytes: bytes)
                            let directory = try bench.directories.inMemory()
                            defer { bench.directories.delete(directory) }
                            return try Aria.start(url: url, connections: connections, directory: directory).succeed()
                                .wall
                        },
                    ])
                bench.add(
                    "segments, \(name)", against: "deferd with one", unit: "s",
                    target: .atMost(isLimited ? 0.25 : 1.1), deferd: samples[0], peer: samples[1])
                bench.add(
                    "segments, \(name)", against: "aria2c -x\(connections) -s\(connections)", unit: "s",
                    target: isLimited ? .atMost(1) : nil, deferd: samples[0], peer: samples[2])
            }
            bench.note(
                "\(connections) connections from nginx over loopback to memory; deferd's result has the sha256 of the file; "
                    + "limited: \(Nginx.limitedSize >> 20) MiB with \(Nginx.limit >> 20) MiB/s for each; unlimited: 1 GiB"
            )
        }
    }

    private static let connections = 8
}
