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
}
