import Foundation
import Glibc

/// A program that was started by the bench.
final class ChildProcess {
    /// The resources that a program used until it ended.
    struct End {
        let status: Int32
        /// Wall time since its start.
        let wall: Double
        let cpu: Double
    }

    let pid: pid_t
    private let arguments: [String]
    private let watch: Stopwatch
    private var isRunning = true

    /// Starts a program found along PATH; its output goes to `output`.
    init(_ arguments: [String], output: String = "/dev/null") throws {
        self.arguments = arguments
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        let variables = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("DEFERD") && $0.key != "NOTIFY_SOCKET" }
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var envp: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in argv + envp { free(text) } }
        var pid = pid_t()
        watch = Stopwatch()
        let error = posix_spawnp(&pid, arguments[0], &actions, nil, &argv, &envp)
        guard error == 0 else {
            throw BenchError("Cannot start \(arguments[0]): \(String(cString: strerror(error))); see .ci/peers.")
        }
        self.pid = pid
    }

    deinit { stop() }

    /// Seconds since it was started.
    var age: Double { watch.seconds }

    /// Waits for the program to end.
    @discardableResult
    func wait() throws -> End {
        var status = Int32()
        var usage = rusage()
        while wait4(pid, &status, 0, &usage) < 0 {
            guard errno == EINTR else { throw BenchError.system("wait for \(arguments[0])") }
        }
        isRunning = false
        let times = [usage.ru_utime, usage.ru_stime].map { Double($0.tv_sec) + Double($0.tv_usec) / 1e6 }
        return End(status: status, wall: watch.seconds, cpu: times[0] + times[1])
    }

    /// As ``wait()``, and expects that it went well.
    @discardableResult
    func succeed() throws -> End {
        let end = try wait()
        guard end.status == 0 else {
            throw BenchError("\(arguments.prefix(3).joined(separator: " ")) ended with \(end.status >> 8).")
        }
        return end
    }

    /// Ends the program and waits for its end; a program that does not end within ten seconds is killed.
    func stop() {
        guard isRunning else { return }
        kill(pid, SIGTERM)
        let patience = Stopwatch()
        while patience.seconds < 10 {
            if waitpid(pid, nil, WNOHANG) != 0 {
                isRunning = false
                return
            }
            usleep(2000)
        }
        kill(pid, SIGKILL)
        _ = try? wait()
    }

    /// The output of a program that must succeed.
    static func output(of arguments: [String]) throws -> String {
        let file = "/tmp/peerbench.\(getpid()).out"
        defer { unlink(file) }
        let end = try ChildProcess(arguments, output: file).wait()
        let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
        guard end.status == 0 else {
            throw BenchError("\(arguments.joined(separator: " ").suffix(200)) ended with \(end.status >> 8): \(text)")
        }
        return text
    }
}
