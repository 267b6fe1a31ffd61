import Foundation
import TestSupport
import Testing

@testable import Systemd

/// Sockets are passed for real: the test starts itself again as a child, with descriptors in place and the environment
/// the service manager makes, and there only `child_takesItsSockets` runs.
@Suite struct ListenSocketsTests {
    static let childVariable = "DEFERD_TEST_LISTEN_CHILD"

    @Test func sockets_areNone_whenNothingWasPassed() async {
        await #expect(processExitsWith: .success) {
            unsetenv("LISTEN_FDS")
            let sockets = try ListenSocket.passed()
            #expect(sockets.isEmpty)
        }
    }

    @Test func sockets_areNone_whenTheyWerePassedToAnotherProcess() async {
        await #expect(processExitsWith: .success) {
            setenv("LISTEN_FDS", "1", 1)
            setenv("LISTEN_PID", "1", 1)
            let sockets = try ListenSocket.passed()
            #expect(sockets.isEmpty)
        }
    }

    @Test func sockets_throw_whenTheEnvironmentIsNonsense() async {
        await #expect(processExitsWith: .success) {
            setenv("LISTEN_FDS", "many", 1)
            setenv("LISTEN_PID", String(getpid()), 1)
            let error = #expect(throws: SystemdError.self) { _ = try ListenSocket.passed() }
            #expect(error?.message.contains("LISTEN_FDS") == true)
        }
    }

    @Test func sockets_areTakenWithTheirNames_whenThePassedOnesListen() async throws {
        let first = try PassedSocket(.stream, listening: true)
        let second = try PassedSocket(.stream, listening: true)
        let said = try child(passing: [first, second], names: "deferd:stored")
        #expect(said == "deferd=3 listening; stored=4 listening; closed on exec; environment clean; second call empty")
    }

    @Test(arguments: [
        (PassedSocket.Kind.datagram, false), (.packet, true), (.stream, false), (.internet, true), (.pipe, false),
    ])
    func sockets_throwNamingTheSocket_whenAnotherThingWasPassed(
        kind: PassedSocket.Kind, listening: Bool
    ) async throws {
        let said = try child(passing: [PassedSocket(kind, listening: listening)], names: "deferd")
        #expect(said.contains("“deferd” is not a listening AF_UNIX stream socket"), "\(said)")
    }

    /// The output of a child with these descriptors from 3 on.
    private func child(passing passed: [PassedSocket], names: String) throws -> String {
        // Only the child itself knows the process id it must be given; exec keeps it.
        let arguments = [
            "/bin/sh", "-c",
            #"""
            exec 3<&0 </dev/null
            case $LISTEN_FDS in 2) exec 4<&1;; esac
            LISTEN_PID=$$ exec "$0" "$@" >/dev/null
            """#,
            try #require(CommandLine.arguments.first), "--testing-library", "swift-testing", "--filter",
            "child_takesItsSockets",
        ]
        let run = try SystemProgram(
            arguments,
            environment: [Self.childVariable: "1", "LISTEN_FDS": String(passed.count), "LISTEN_FDNAMES": names],
            input: passed[0].descriptor, output: passed.count > 1 ? passed[1].descriptor : nil)
        withExtendedLifetime(passed) {}
        let lines = run.errorText.split(separator: "\n")
        return try #require(lines.first { $0.hasPrefix("child: ") }.map { String($0.dropFirst(7)) }, "\(lines)")
    }

    @Test(
        .enabled(
            if: ProcessInfo.processInfo.environment[childVariable] != nil,
            "runs only in the child of another test"
        )
    )
    func child_takesItsSockets() {
        var said: [String] = []
        do {
            let sockets = try ListenSocket.passed()
            for socket in sockets {
                var address = sockaddr()
                var length = socklen_t(MemoryLayout<sockaddr>.size)
                let listens = accept(socket.descriptor, &address, &length) < 0 && errno == EAGAIN
                said.append("\(socket.name)=\(socket.descriptor) \(listens ? "listening" : "deaf")")
            }
            if sockets.allSatisfy({ fcntl($0.descriptor, F_GETFD) & FD_CLOEXEC != 0 }) { said.append("closed on exec") }
            if getenv("LISTEN_FDS") == nil && getenv("LISTEN_FDNAMES") == nil { said.append("environment clean") }
            if try ListenSocket.passed().isEmpty { said.append("second call empty") }
        } catch {
            said.append("\(error)")
        }
        FileHandle.standardError.write(Data("child: \(said.joined(separator: "; "))\n".utf8))
    }
}
