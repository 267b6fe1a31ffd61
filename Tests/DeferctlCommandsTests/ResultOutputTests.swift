import Glibc
import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct ResultOutputTests {
    @Test(
        arguments: [
            (["status": 200, "notModified": false, "body": "hi"], true), (["exit": 0, "output": "hi"], true),
            (["status": 200, "sha256": "a", "spilled": true], true), (["status": 200, "sha256": "a"], false),
            (["size": 3, "status": 200, "body": "xyz"], false), (["body": "hi"], false), ("text", false), (nil, false),
        ] as [(JSON, Bool)])
    func hasBody_isTrue_ofResultsOfRequests(result: JSON, hasBody: Bool) {
        #expect(job(1, "succeeded", ["result": result]).hasBody == hasBody)
    }

    @Test(
        arguments: [
            (200, "2.0 kB in 3.0 s"), (206, "2.0 kB in 3.0 s"),
            (304, "The file already exists (2.0 kB); nothing was transferred."),
            (nil, "The file already exists (2.0 kB); nothing was transferred."),
        ] as [(JSON, String)])
    func summary_saysThatNothingWasTransferred_whenTheFileWasThere(status: JSON, text: String) {
        let download = job(
            1, "succeeded",
            [
                "startedAt": .string(noon.adding(seconds: -3).description), "finishedAt": .string(noon.description),
                "result": ["size": 2000, "status": status],
            ])
        #expect(DownloadCommand.summary(of: download) == text)
    }

    @Test func outputFile_isCheckedBeforehand_andNothingIsChanged() async throws {
        let file = try TemporaryFile([1, 2])
        try FileOutput.check(path: file.path)
        #expect(try await InputLines.member("x", of: file.path).value == "\u{1}\u{2}")
        try FileOutput.check(path: file.path + ".new")
        #expect(access(file.path + ".new", F_OK) != 0)
        for path in ["/nope/x", "/tmp", "/tmp/"] {
            let failure = #expect(throws: CommandFailure.self) { try FileOutput.check(path: path) }
            #expect(failure?.status == .output)
        }
    }
}
