import Glibc
import JobModel
import TestSupport
import Testing

/// Shortages of the machine: calls are refused as documented, no job is lost, and once resources are available again,
/// the daemon recovers by itself.
@Suite struct ExhaustionTests {
    private static let canMount = geteuid() == 0 && Files.exists("/usr/bin/unshare")

    /// A command that runs `script` first in a separate mount namespace, with `directory` as `$0`.
    private func wrapper(_ directory: String, _ script: String) throws -> [String] {
        try #require(mkdir(directory, 0o700) == 0 || errno == EEXIST)
        return ["/usr/bin/unshare", "-m", "/bin/sh", "-c", "{ \(script); } && exec \"$@\"", directory]
    }

    @Test(.enabled(if: canMount, "mounting needs root and unshare")) func start_saysSo_whenTheStateIsReadOnly()
        async throws
    {
        try await TemporaryDirectory.with { directory in
            let state = directory.path + "/state"
            let script = "mount -t tmpfs tmpfs \"$0\" && mount -o remount,ro \"$0\""
            let command = try wrapper(state, script) + Daemon.command(in: directory)
            let (end, _, errors) = try await ChildProcess.run(command)
            // This mount can be changed, and then the daemon starts by itself.
            #expect(end == .code(75), "\(end) \(errors)")
            #expect(errors.contains(state) && errors.contains("ead-only"), "\(errors)")
        }
    }

    @Test(.enabled(if: geteuid() == 0 && Files.exists("/usr/bin/setpriv")), arguments: [4, 8, 16, 24, 48, 200])
    func daemon_servesOrSaysWhyNot_whenThreadsAreFew(threads: Int) async throws {
        try await TemporaryDirectory.with { directory in
            // Root has no such limit, which counts all processes of a user.
            let user = User(uid: 64_100 + uid_t(threads), groups: [64_001])
            try #require(chown(directory.path, user.uid, user.groups[0]) == 0)
            let readiness = try Readiness(in: directory)
            try #require(chown(readiness.path, user.uid, user.groups[0]) == 0)
            let command = user.command(
                ["/usr/bin/prlimit", "--nproc=\(threads):\(threads)"] + (try Daemon.command(in: directory)))
            let process = try ChildProcess(
                command, environment: ["NOTIFY_SOCKET": readiness.path, "HOME": directory.path])
            let watcher = Task {
                _ = try? await process.end()
                readiness.close()
            }
            defer { watcher.cancel() }
            if try await readiness.isReached() {
                let wire = try Wire(Daemon.socket(in: directory))
                #expect(try await wire.run(.value(1))["state"] == "succeeded")
                process.send(signal: SIGTERM)
                #expect(try await process.end() == .code(0))
            } else {
                let end = try await process.end()
                #expect(end == .code(75) && threads < 200, "\(process.errorText)")
                #expect(process.errorText.contains("threads"), "\(process.errorText)")
            }
        }
    }
}
