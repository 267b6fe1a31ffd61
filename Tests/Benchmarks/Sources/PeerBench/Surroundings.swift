import Foundation

/// The conditions of the figures: the machine, the day, and the versions of the programs.
enum Surroundings {
    static func lines(daemon: String) -> [String] {
        let model =
            (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n")
            .first { $0.hasPrefix("model name") }?.split(separator: ":").last ?? ""
        let kernel = (try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)) ?? ""
        let versions = [
            [daemon, "--version"], ["beanstalkd", "-v"], ["aria2c", "--version"], ["curl", "--version"],
            ["nginx", "-v"], ["openssl", "version"], ["psql", "--version"],
        ].compactMap { try? ChildProcess.output(of: $0).split(separator: "\n").first.map(String.init) }
        return [
            "- \(Date().formatted(.iso8601.year().month().day())), "
                + "\(ProcessInfo.processInfo.activeProcessorCount) cores\(model), Linux \(kernel.prefix { $0 != "\n" })",
            "- versions: \(versions.joined(separator: ", "))",
        ]
    }
}
