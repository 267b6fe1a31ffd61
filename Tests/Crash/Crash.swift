import Foundation

/// Kills the daemon again and again while clients submit at full speed, and counts what is missing afterwards.
///
/// `crash [ROUNDS [SEED]]`: 200 rounds unless said otherwise. Exits with 1 when anything was lost or is corrupt.
/// `crash faults [ROUNDS [SEED]]` does not kill, but lets file operations fail by chance.
@main
struct Crash {
    static func main() async throws {
        signal(SIGPIPE, SIG_IGN)
        var arguments = CommandLine.arguments.dropFirst()
        let isAboutFaults = arguments.first == "faults"
        if isAboutFaults { arguments = arguments.dropFirst() }
        let rounds = arguments.first.flatMap(Int.init) ?? 200
        let seed = arguments.dropFirst().first.flatMap(UInt64.init) ?? UInt64.random(in: 1 ... .max)
        let directory = FileManager.default.temporaryDirectory.appending(path: "deferd-crash-\(getpid())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        print("crash: \(rounds) rounds, seed \(seed)")
        if isAboutFaults {
            let report = try await FaultRun(rounds: rounds, seed: seed, directory: directory).run()
            print(report)
            return end(report.isClean, directory)
        }
        let report = try await CrashRun(rounds: rounds, seed: seed, directory: directory).run()
        print(report)
        end(report.isClean, directory)
    }

    private static func end(_ isClean: Bool, _ directory: URL) {
        try? FileManager.default.removeItem(at: directory)
        exit(isClean ? 0 : 1)
    }
}
