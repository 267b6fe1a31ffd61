import Foundation
import Glibc
import JobClient
import JobModel

/// The environment, working directory and umask of this process, which a command runs in if the daemon is the user's own.
struct Surroundings: Sendable {
    /// The variables of this process that are UTF-8.
    let environment: [String: String]
    /// The names of the other variables, escaped.
    let omitted: [String]

    /// Reads the variables that this process was started with.
    init() throws(CommandFailure) {
        guard let bytes = FileManager.default.contents(atPath: "/proc/self/environ") else {
            throw CommandFailure(
                .bug, "/proc/self/environ cannot be read, so the environment is unknown; use --clean-env.")
        }
        self.init(environment: bytes)
    }

    init(environment bytes: some Sequence<UInt8>) {
        var variables: [String: String] = [:]
        var omitted: [String] = []
        for line in Array(bytes).split(separator: 0) {
            let parts = line.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else { continue }
            guard let name = String(validating: parts[0], as: UTF8.self),
                let value = String(validating: parts[1], as: UTF8.self)
            else {
                omitted.append(String(escaping: parts[0]))
                continue
            }
            // As getenv(3) finds it.
            if variables[name] == nil { variables[name] = value }
        }
        (environment, self.omitted) = (variables, omitted)
    }

    /// The working directory of this process.
    static func workingDirectory() throws(CommandFailure) -> String {
        guard let path = getcwd(nil, 0) else {
            throw CommandFailure(
                .badData,
                "The current directory cannot be found (\(String(cString: strerror(errno)))); change to one that exists, or "
                    + "name one with -C.")
        }
        defer { free(path) }
        guard let text = String(validatingCString: path) else {
            throw CommandFailure.notUTF8("The current directory", path, "change to another, or name one with -C.")
        }
        return text
    }

    /// The path of a transfer as the daemon gets it: one of the caller's own gets a path in this process's directory, without
    /// symbolic links, which it does not follow.
    static func path(_ text: String, isOwn: Bool) throws(CommandFailure) -> String {
        let home = text.hasPrefix("~/") ? ProcessInfo.processInfo.environment["HOME"] : nil
        let path = home.map { $0 + text.dropFirst() } ?? text
        guard isOwn else { return path }
        let whole = try CommandOptions.absolute(path)
        let name = whole.utf8.lastIndex(of: UInt8(ascii: "/")).map { whole[$0...] } ?? ""
        guard let directory = realpath(String(whole.dropLast(name.count)) + "/", nil) else { return whole }
        defer { free(directory) }
        return (String(validatingCString: directory).map { $0 == "/" ? "" : $0 } ?? "") + name
    }

    /// The umask of this process, in octal digits.
    static func umask() -> String {
        // The call that reads it also sets it.
        let mask = Glibc.umask(0o777)
        _ = Glibc.umask(mask)
        return String(mask, radix: 8)
    }

    /// Whether it is the caller's own daemon, and takes any path of theirs.
    static func takesPaths(_ client: JobClient) async throws(CommandFailure) -> Bool {
        guard await mayBeSent(to: client) else { return false }
        do { return try await client.info()["instance"] == "user" } catch { throw CommandFailure(error) }
    }

    /// Whether the daemon belongs to the caller, who then trusts it with the environment.
    ///
    /// systemd itself, process 1, listens for the system's daemon, which runs as another user.
    static func mayBeSent(to client: JobClient) async -> Bool {
        guard let peer = await client.peer else { return false }
        return peer.uid == geteuid() && peer.pid > 1
    }
}
