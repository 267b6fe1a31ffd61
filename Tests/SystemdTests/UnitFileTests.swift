import Foundation
import Testing

private let systemdAnalyze = "/usr/bin/systemd-analyze"

/// The shipped units as files, without a systemd that runs.
@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: systemdAnalyze), "There is no systemd-analyze here."))
struct UnitFileTests {
    @Test func systemsService_isConfined() throws {
        let unit = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../systemd/deferd.service").standardized.path
        let process = Process()
        process.executableURL = URL(filePath: systemdAnalyze)
        // Exit 1 where the exposure is more than 1.5.
        process.arguments = ["security", "--offline=true", "--threshold=15", "--no-pager", unit]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(text.suffix(200))")
        #expect(text.contains("Overall exposure level"))
    }
}
