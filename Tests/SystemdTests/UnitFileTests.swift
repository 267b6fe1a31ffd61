import Foundation
import TestSupport
import Testing

private let systemdAnalyze = "/usr/bin/systemd-analyze"

/// The shipped units as files, without a systemd that runs.
@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: systemdAnalyze), "There is no systemd-analyze here."))
struct UnitFileTests {
    @Test func systemsService_isConfined() throws {
        let unit = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../systemd/deferd.service").standardized.path
        // Exits with 1 if the exposure exceeds 1.5.
        let run = try SystemProgram([
            systemdAnalyze, "security", "--offline=true", "--threshold=15", "--no-pager", unit,
        ])
        #expect(run.status == 0, "\(run.outputText.suffix(200)) \(run.errorText)")
        #expect(run.outputText.contains("Overall exposure level"))
    }

    /// Settings that confine the daemon confine the commands of its user as well: node and java need memory that is writable
    /// and executable, sudo needs new privileges, and each filter of system calls implies that there are none.
    @Test func usersService_confinesNoCommand() throws {
        let unit = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../systemd/user/deferd.service").standardized
        let lines = try String(contentsOf: unit, encoding: .utf8).split(separator: "\n")
        let service = lines.drop { $0 != "[Service]" }.dropFirst().prefix { !$0.hasPrefix("[") }
        let settings = service.filter { !$0.hasPrefix("#") }.map { String($0.prefix { $0 != "=" }) }
        #expect(
            settings == [
                "Type", "ExecStart", "ExecReload", "Restart", "RestartSec", "RestartPreventExitStatus", "WatchdogSec",
                "TimeoutStartSec", "TimeoutStopSec", "TimeoutAbortSec", "KillMode", "UMask", "OOMPolicy",
            ])
    }
}
