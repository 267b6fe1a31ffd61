import Foundation
import Testing

@testable import DeferctlCommands

@Suite struct LocalZoneTests {
    @Test func name_isThatOfTheVariable_orOfTheMachine() throws {
        let root = FileManager.default.temporaryDirectory.path + "/zones-\(UUID())"
        defer { try? FileManager.default.removeItem(atPath: root) }
        let zones = root + "/usr/share/zoneinfo/Europe"
        try FileManager.default.createDirectory(atPath: zones, withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: root + "/etc", withIntermediateDirectories: true)
        for zone in ["Berlin", "Paris"] { try Data().write(to: URL(filePath: "\(zones)/\(zone)")) }
        func name(_ variable: String? = nil) -> String? {
            LocalZone.name(environment: variable.map { ["TZ": $0] } ?? [:], root: root)
        }
        #expect(name() == nil)
        #expect(name("Europe/Paris") == "Europe/Paris")
        #expect(name(":Europe/Paris") == "Europe/Paris")
        #expect(name("CET-1CEST") == nil)
        #expect(name("../Europe/Paris") == nil)
        try FileManager.default.createSymbolicLink(
            atPath: root + "/etc/localtime", withDestinationPath: "\(zones)/Berlin")
        #expect(name() == "Europe/Berlin")
        try Data("Europe/Paris\n".utf8).write(to: URL(filePath: root + "/etc/timezone"))
        #expect(name() == "Europe/Paris")
    }
}
