import Foundation

/// A daemon of the run's own, started and ended by it.
struct CrashDaemon {
    private let process = Process()
    let socket: String

    /// Starts the daemon that was built beside this program, and waits until it serves.
    init(directory: URL) throws {
        socket = directory.appending(path: "s").path
        process.executableURL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appending(path: "deferd")
        process.arguments = [
            "--socket", socket, "--state-directory", directory.appending(path: "state").path, "--downloads-directory",
            directory.appending(path: "downloads").path,
        ]
        process.environment = ProcessInfo.processInfo.environment
            .merging([
                "DEFERD_RETENTION_COUNT": "1000000000", "DEFERD_LIMITS_QUEUEDJOBSPERUSER": "100000000",
                // The run waits at most two minutes for a job.
                "DEFERD_HTTP_RETRY_MAXDELAY": "4",
            ]) { $1 }
        let log = Pipe()
        process.standardError = log
        try process.run()
        var text = ""
        while !text.contains("serves") {
            let more = log.fileHandleForReading.availableData
            guard !more.isEmpty else { fatalError("The daemon did not start: \(text)") }
            text += String(decoding: more, as: UTF8.self)
        }
        log.fileHandleForReading.readabilityHandler = { _ = $0.availableData }
    }

    func kill() {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    func terminate() {
        process.terminate()
        process.waitUntilExit()
    }
}
