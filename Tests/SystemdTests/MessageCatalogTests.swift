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
        let entry = JournalEntry(event, metadata: [("event", "storage-failed"), ("job", "42")])
        let id = MessageCatalog.ids["storage-failed"] ?? ""
        for field in [("MESSAGE_ID", id), ("DEFERD_JOB", "42"), ("DEFERD_EVENT", "storage-failed")] {
            #expect(entry.fields.contains { $0 == field })
        }
        let other = JournalEntry(event, metadata: [("event", "unknown")])
        #expect(!other.fields.contains { $0.name == "MESSAGE_ID" })
    }
}
