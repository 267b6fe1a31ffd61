import Foundation

/// Kills the daemon again and again while clients submit at full speed, and counts what is missing afterwards.
///
/// `crash [ROUNDS [SEED]]`: 200 rounds unless said otherwise. Exits with 1 when anything was lost or is corrupt.
@main
struct Crash {
    static func main() async throws {
        signal(SIGPIPE, SIG_IGN)
        let rounds = CommandLine.arguments.dropFirst().first.flatMap(Int.init) ?? 200
        let seed = CommandLine.arguments.dropFirst(2).first.flatMap(UInt64.init) ?? UInt64.random(in: 1 ... .max)
        let folder = FileManager.default.temporaryDirectory.appending(path: "deferd-crash-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        print("crash: \(rounds) rounds, seed \(seed)")
        let report = try await CrashRun(rounds: rounds, seed: seed, folder: folder).run()
        print(report)
        exit(report.isClean ? 0 : 1)
    }
}
