import Foundation
import Glibc
import Synchronization
import Testing

/// A program that a test runs. Its output is read as it comes, and its end is reaped whatever the test does.
final class ChildProcess: Sendable {
    /// How a program ended.
    enum End: Sendable, Equatable {
        case code(Int32)
        case signal(Int32)
    }

    /// A line of output; the last one may have no line end.
    struct Line: Sendable, CustomStringConvertible {
        let text: String
        let isError: Bool

        var description: String { (isError ? "stderr: " : "stdout: ") + text }
    }

    private struct State {
        var output: [UInt8] = []
        var errors: [UInt8] = []
        var end: End?
    }

    let pid: pid_t
    let lines = Mailbox<Line>()
    private let ends = Mailbox<End>()
    private let state = Mutex(State())
    private let input: Mutex<FileDescriptor?>

    /// The standard output so far.
    var output: [UInt8] { state.withLock(\.output) }
    var outputText: String { String(decoding: output, as: UTF8.self) }
    /// The standard error so far.
    var errorText: String { String(decoding: state.withLock(\.errors), as: UTF8.self) }

    /// Starts `arguments[0]`. Standard input is a pipe that ``send(_:)`` writes to; with a terminal all three are its
    /// slave side, and the program leads a session of its own; with a `socket` input and output are that.
    init(
        _ arguments: [String], environment: [String: String] = [:], directory: String? = nil,
        terminal: PseudoTerminal? = nil, socket: FileDescriptor? = nil
    ) throws {
        let input = try PipeEnds()
        let output = try PipeEnds()
        let errors = try PipeEnds()
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        if let terminal {
            // The first terminal that the leader of a session opens becomes its own, so that Ctrl-C reaches it.
            posix_spawn_file_actions_addopen(&actions, 0, terminal.slave, O_RDWR, 0)
            posix_spawn_file_actions_adddup2(&actions, 0, 1)
            posix_spawn_file_actions_adddup2(&actions, 0, 2)
            posix_spawnattr_setflags(
                &attributes, Int16(Self.newSession | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        } else {
            posix_spawn_file_actions_adddup2(&actions, (socket ?? input.reading).number, 0)
            posix_spawn_file_actions_adddup2(&actions, (socket ?? output.writing).number, 1)
            posix_spawn_file_actions_adddup2(&actions, errors.writing.number, 2)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        }
        let arguments = directory.map { ["/usr/bin/env", "-C", $0] + arguments } ?? arguments
        var defaults = sigset_t()
        sigfillset(&defaults)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        // Dispatch's threads block signals, and the program would inherit that.
        var blocked = sigset_t()
        sigemptyset(&blocked)
        posix_spawnattr_setsigmask(&attributes, &blocked)
        let argv = arguments.map { strdup($0) } + [nil]
        let variables = Self.basicEnvironment.merging(environment) { $1 }
        let envp = variables.filter { !$0.value.isEmpty }.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in argv + envp { free(text) } }
        var pid = pid_t()
        let result = Inheritance.starting { posix_spawn(&pid, arguments[0], &actions, &attributes, argv, envp) }
        try #require(result == 0, "\(arguments[0]) cannot be started: \(String(cString: strerror(result)))")
        self.pid = pid
        let child = pid
        self.input = Mutex(input.writing)
        input.reading.close()
        output.writing.close()
        errors.writing.close()
        let readers = [(output.reading, false), (errors.reading, true)].map { descriptor, isError in
            let done = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                self.read(descriptor, isError: isError)
                done.signal()
            }
            return done
        }
        Thread.detachNewThread {
            var status: Int32 = 0
            while waitpid(child, &status, 0) < 0, errno == EINTR {}
            let end: End = status & 0x7f == 0 ? .code(status >> 8 & 0xff) : .signal(status & 0x7f)
            // All output has been read before the end is reported, unless a process that it left behind holds a pipe.
            for reader in readers { _ = reader.wait(timeout: .now() + 30) }
            self.state.withLock { $0.end = end }
            self.lines.close()
            self.ends.put(end)
        }
    }

    /// `POSIX_SPAWN_SETSID`, which the headers show to GNU sources only.
    private static let newSession: Int32 = 0x80

    /// The variables that programs need from this process's environment.
    private static let basicEnvironment = ProcessInfo.processInfo.environment.filter {
        ["PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "LLVM_PROFILE_FILE"].contains($0.key)
            || $0.key.hasSuffix("SAN_OPTIONS")
    }

    private func read(_ descriptor: FileDescriptor, isError: Bool) {
        var partial: [UInt8] = []
        while let bytes = descriptor.read() {
            state.withLock { if isError { $0.errors += bytes } else { $0.output += bytes } }
            partial += bytes
            while let end = partial.firstIndex(of: UInt8(ascii: "\n")) {
                lines.put(Line(text: String(decoding: partial[..<end], as: UTF8.self), isError: isError))
                partial.removeFirst(end + 1)
            }
        }
        if !partial.isEmpty { lines.put(Line(text: String(decoding: partial, as: UTF8.self), isError: isError)) }
        descriptor.close()
    }

    /// Writes to its standard input.
    func send(_ text: String) {
        input.withLock { $0?.write(Array(text.utf8)) }
    }

    /// Ends its standard input.
    func closeInput() {
        input.withLock { input in
            input?.close()
            input = nil
        }
    }

    /// Sends a signal, unless it has ended.
    func send(signal: Int32) {
        state.withLock { if $0.end == nil { _ = kill(pid, signal) } }
    }

    /// Waits for its end.
    func end(within seconds: Double = Patience.seconds) async throws -> End {
        let end = try #require(try await ends.next("end of process \(pid)", within: seconds))
        // For later callers.
        ends.put(end)
        return end
    }

    /// Waits for a line that holds `text`.
    @discardableResult
    func line(containing text: String) async throws -> Line {
        let line = try await lines.next("line with \"\(text)\"") { $0.text.contains(text) }
        return try #require(line, "it ended without a line with \"\(text)\"; it said: \(errorText)")
    }

    /// Runs a program to its end.
    static func run(
        _ arguments: [String], environment: [String: String] = [:], directory: String? = nil, input: String? = nil,
        within seconds: Double = Patience.seconds
    ) async throws -> (end: End, output: String, errors: String) {
        let process = try ChildProcess(arguments, environment: environment, directory: directory)
        if let input { process.send(input) }
        process.closeInput()
        do {
            let end = try await process.end(within: seconds)
            return (end, process.outputText, process.errorText)
        } catch {
            process.send(signal: SIGKILL)
            throw error
        }
    }
}

/// The programs under test, built beside the tests.
enum BuiltProgram {
    static let deferd = directory + "/deferd"
    static let deferctl = directory + "/deferctl"
    static let crash = directory + "/crash"

    private static let directory: String = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(fileURLWithPath: own).deletingLastPathComponent().path
    }()
}
