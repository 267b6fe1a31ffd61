import Foundation
import JobModel
import Logging
import Testing

@testable import Systemd

@Suite struct MessageCatalogTests {
    private let repository = URL(filePath: #filePath).appending(path: "../../..").standardizedFileURL

    @Test func everyEvent_hasANumber_andEveryNumberAnEvent() {
        // The watchdog, which is in this module, names its event by itself.
        #expect(Set(MessageCatalog.ids.keys) == Set(CatalogEvent.allCases.map(\.rawValue) + ["watchdog-unfed"]))
        #expect(Set(MessageCatalog.ids.values).count == MessageCatalog.ids.count)
        for id in MessageCatalog.ids.values { #expect(id.count == 32 && id.allSatisfy(\.isHexDigit)) }
    }

    @Test func catalogAndManual_explainEveryNumber() throws {
        let catalog = try String(contentsOf: repository.appending(path: "systemd/deferd.catalog"), encoding: .utf8)
        let numbers = catalog.split(separator: "\n").filter { $0.hasPrefix("-- ") }.map { String($0.dropFirst(3)) }
        #expect(Set(numbers) == Set(MessageCatalog.ids.values) && numbers.count == MessageCatalog.ids.count)
        let manual = try String(contentsOf: repository.appending(path: "config/man/deferd.8"), encoding: .utf8)
        for (name, id) in MessageCatalog.ids { #expect(manual.contains(".It Cm \(name)\n.Li \(id) "), "\(name)") }
    }

    @Test func entry_hasTheNumberOfItsEvent() {
        let event = LogEvent(
            level: .error, message: "m", error: nil, metadata: nil, source: nil, file: "f.swift", function: "f", line: 1
        )
        let entry = JournalEntry(event: event, metadata: [("event", "storage-failed"), ("job", "42")], identifier: "i")
        #expect(
            entry.fields.contains(.init(name: "MESSAGE_ID", value: MessageCatalog.ids["storage-failed"] ?? "")))
        #expect(entry.fields.contains(.init(name: "DEFERD_JOB", value: "42")))
        #expect(entry.fields.contains(.init(name: "DEFERD_EVENT", value: "storage-failed")))
        let other = JournalEntry(event: event, metadata: [("event", "unknown")], identifier: "i")
        #expect(!other.fields.contains { $0.name == "MESSAGE_ID" })
    }
}
