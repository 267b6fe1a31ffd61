import Foundation

/// Kills the daemon repeatedly while clients submit at full speed, and counts missing jobs afterwards.
///
/// `crash [ROUNDS [SEED]]`: 200 rounds by default. Exits with 1 if a job was lost or corrupted.
/// `crash faults [ROUNDS [SEED]]` does not kill, but makes file operations fail at random.
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
