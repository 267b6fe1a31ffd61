import Foundation
import JobModel
import Logging
import Testing

@testable import Systemd

@Suite struct LogDestinationTests {
    private func entry(_ metadata: [(key: String, value: String)], id: String? = nil) -> [String] {
        let event = LogEvent(
            level: .warning, message: "two\nlines", error: nil, metadata: nil, source: nil,
            file: "JobStore/Store.swift", function: "commit()", line: 42)
        return JournalEntry(event, id: id, metadata: metadata).fields.map { "\($0.name)=\($0.value)" }
    }

    @Test func entry_namesMessagePriorityAndPlace_whenAnEventIsLogged() {
        #expect(
            entry([("job", "7")]) == [
                "MESSAGE=two\nlines", "PRIORITY=4", "SYSLOG_IDENTIFIER=deferd", "CODE_FILE=JobStore/Store.swift",
                "CODE_LINE=42", "CODE_FUNC=commit()", "DEFERD_JOB=7",
            ]
        )
        #expect(entry([], id: "ab57").contains("MESSAGE_ID=ab57"))
    }

    @Test(arguments: zip(Logger.Level.allCases, ["7", "7", "6", "5", "4", "3", "2"]))
    func priority_isTheSyslogOne_whenALevelIsSent(level: Logger.Level, priority: String) {
        #expect(JournalEntry.priority(of: level) == priority)
    }

    @Test(
        arguments: [
            ("job", "DEFERD_JOB"), ("http.status", "DEFERD_HTTP_STATUS"), ("a=b\nMESSAGE", "DEFERD_A_B_MESSAGE"),
            ("grün", "DEFERD_GR_N"), ("9", "DEFERD_9"),
        ])
    func name_hasOnlyWhatTheJournalAccepts_whenAKeyBecomesAField(key: String, name: String) {
        #expect(JournalEntry.name(forKey: key) == name)
    }

    @Test func destination_comparesDeviceAndInode_whenTheVariableIsSet() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "deferd-stream-\(UUID().uuidString)")
        try Data().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let handle = try FileHandle(forReadingFrom: file)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        let device = try #require(attributes[.systemNumber] as? NSNumber)
        let inode = try #require(attributes[.systemFileNumber] as? NSNumber)
        let descriptor = handle.fileDescriptor
        #expect(LogDestination.current(descriptor, stream: "\(device):\(inode)") == .journal)
        #expect(LogDestination.current(descriptor, stream: "\(device):\(inode.uint64Value + 1)") == .standardError)
        #expect(LogDestination.current(descriptor, stream: nil) == .standardError)
        #expect(LogDestination.current(descriptor, stream: "\(device)") == .standardError)
        #expect(LogDestination.current(-1, stream: "\(device):\(inode)") == .standardError)
    }

    @Test func line_isOne_whenMessageAndMetadataHoldLineEnds() {
        let line = StandardErrorLine.text(
            at: Timestamp(milliseconds: 1_767_323_045_006),
            level: .error,
            message: "first\nsecond \u{1B}[31mred",
            metadata: [("job", "7"), ("path", #"a "b" c"#), ("empty", ""), ("text", "x\ny")]
        )
        #expect(
            line
                == #"2026-01-02T03:04:05.006Z error first\nsecond \u{1B}[31mred job=7 path="a \"b\" c" empty="" text=x\ny"#
                + "\n"
        )
    }
}
