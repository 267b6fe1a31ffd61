import Foundation
import JobModel
import Testing

@Suite struct MessageCatalogTests {
    private let repository = URL(filePath: #filePath).appending(path: "../../..").standardizedFileURL

    @Test func catalogAndManual_explainEveryNumber() throws {
        let events = CatalogEvent.allCases
        let catalog = try String(contentsOf: repository.appending(path: "systemd/deferd.catalog"), encoding: .utf8)
        let numbers = catalog.split(separator: "\n").filter { $0.hasPrefix("-- ") }.map { String($0.dropFirst(3)) }
        #expect(Set(numbers) == Set(events.map(\.rawValue)) && numbers.count == events.count)
        let manual = try String(contentsOf: repository.appending(path: "config/man/deferd.8"), encoding: .utf8)
        for event in events {
            #expect(event.rawValue.count == 32 && event.rawValue.allSatisfy(\.isHexDigit))
            #expect(manual.contains(".It Cm \(event.name)\n.Li \(event.rawValue) "), "\(event.name)")
        }
    }

    /// The watchdog's module does not know the events.
    @Test func name_standsForItsEvent() {
        #expect(CatalogEvent(name: "watchdog-unfed") == .watchdogUnfed)
        #expect(CatalogEvent(name: "watchdogUnfed") == nil)
    }
}
