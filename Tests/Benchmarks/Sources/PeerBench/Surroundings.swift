import Foundation
import Glibc

/// The conditions of the figures: the machine, the day, and the programs with their versions and options.
struct Surroundings {
    let lines: [String]

    init(_ settings: BenchSettings) {
        let model =
            (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n")
            .first { $0.hasPrefix("model name") }?.split(separator: ":").last.map { String($0.dropFirst()) }
        let kernel = (try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)) ?? ""
        let day = Date().formatted(.iso8601.year().month().day())
        lines = [
            "\(day), \(ProcessInfo.processInfo.activeProcessorCount) cores \(model ?? ""), Linux \(kernel.prefix { $0 != "\n" && $0 != "-" })",
            "versions: "
                + [
                    Self.version(settings.daemon, "--version").map { $0.hasPrefix("deferd") ? $0 : "deferd " + $0 },
                    Self.version("beanstalkd", "-v"), Self.version("aria2c", "--version"),
                    Self.version("curl", "--version"), Self.version("nginx", "-v"),
                    Self.version("openssl", "version"), Self.version("psql", "--version"),
                ].compactMap(\.self).joined(separator: ", "),
            "beanstalkd: \(Beanstalkd.options)",
            "aria2: \(Aria.options.joined(separator: " "))",
            "curl: \(Curl.options.joined(separator: " "))",
            "nginx: sendfile, one worker for each core, loopback; files in memory. State of the daemons on one disk.",
        ]
    }

    private static func version(_ program: String, _ flag: String) -> String? {
        guard let output = try? ChildProcess.output(of: [program, flag]) else { return nil }
        let line = output.split(separator: "\n").first.map(String.init) ?? ""
        let words = ["version: ", "version ", "nginx/", "(PostgreSQL) "].reduce(line) { $0.replacing($1, with: "") }
            .split(separator: " ").prefix(2)
        return words.joined(separator: " ")
    }
}
