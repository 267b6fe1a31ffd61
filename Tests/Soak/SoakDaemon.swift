import Foundation
import Synchronization
import TestSupport

/// The daemon built beside this program, with short retention and low limits, so that it comes to rest early.
final class SoakDaemon: Sendable {
    private let process = Process()
    private let directory: String

    var socket: String { directory + "/s" }
    var pid: Int32 { process.processIdentifier }
    var isRunning: Bool { process.isRunning }
    var log: String { directory + "/log" }

    /// Seconds that finished jobs are kept.
    static let retention = 20
    /// Seconds after which the first of them are gone, as the daemon looks for the old ones once a minute.
    static let longestKept = retention + 65

    static let configuration = """
        socket: {mode: "0666"}
        downloads: {minimumFree: 0}
        queues: {default: 16, honest: 4}
        limits: {body: 4194304, documents: 16777216, memoryPerUser: 16777216, queuedJobsPerUser: 5000}
        http: {perHost: 24, connectTimeout: 2, idleTimeout: 3, retryAfter: 1, retry: {max: 4, initial: 0.5, maxDelay: 60}}
        programs: {cat: {command: [/bin/cat]}, shell: {command: [/bin/sh, -c]}}
        retention: {age: \(retention), count: 3000, bytes: 33554432}
        """

    /// The file with the certificate authorities that this machine trusts.
    private static let certificates = "/etc/ssl/certs/ca-certificates.crt"
    static var trustsCertificates: Bool {
        UserSockets.canBeOthers && FileManager.default.fileExists(atPath: certificates)
    }

    /// The words before a command whose process finds the authority of our certificates there, and no other process
    /// does.
    private static func trusting(_ directory: String) throws -> [String] {
        guard trustsCertificates else { return [] }
        try Certificates.authority.write(toFile: directory + "/authority.pem", atomically: true, encoding: .utf8)
        return [
            "/usr/bin/unshare", "--mount", "/bin/sh", "-c", #"mount --bind "$1" "$2" && shift 2 && exec "$@""#, "sh",
            directory + "/authority.pem", certificates,
        ]
    }

    /// Starts the daemon in `directory`, and waits until it serves.
    init(directory: String, configuration yaml: String = SoakDaemon.configuration) throws {
        self.directory = directory
        let configuration = directory + "/deferd.yaml"
        try yaml.write(toFile: configuration, atomically: true, encoding: .utf8)
        let deferd = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "deferd")
        // The daemon ends with the soak in any case: with the thread that starts it, which must therefore last.
        process.executableURL = URL(filePath: "/usr/bin/setpriv")
        process.arguments =
            try ["--pdeathsig", "KILL"] + Self.trusting(directory) + [
                deferd.path, "--config", configuration, "--socket", directory + "/s",
                "--state-directory", directory + "/state",
                "--downloads-directory", directory + "/downloads",
            ]
        try Data().write(to: URL(filePath: directory + "/log"))
        process.standardError = FileHandle(forWritingAtPath: directory + "/log")
        try Self.start(process)
        while process.isRunning, !text.contains("serves") { usleep(20_000) }
        guard process.isRunning else { throw SoakError("The daemon did not start: \(text)") }
    }

    private static func start(_ process: Process) throws {
        let result = Mutex<Result<Void, any Error>?>(nil)
        let isStarted = DispatchSemaphore(value: 0)
        // It waits for a signal that does not come.
        Thread.detachNewThread {
            result.withLock { $0 = Result { try process.run() } }
            isStarted.signal()
            while true { pause() }
        }
        isStarted.wait()
        try result.withLock { try $0?.get() }
    }

    /// The log so far.
    private var text: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }

    /// Internal errors in the log.
    var defects: [String] {
        text.split(separator: "\n").map(String.init).filter { $0.contains("defect") || $0.contains("critical") }
    }

    func sample() -> Sample {
        Sample(of: pid, state: directory + "/state", downloads: directory + "/downloads")
    }

    /// Ends it, and says whether that went as it should.
    func stop() -> Bool {
        process.terminate()
        process.waitUntilExit()
        return process.terminationReason == .exit && process.terminationStatus == 0
    }
}

struct SoakError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
