import Foundation
import Testing

@testable import DeferctlCommands

@Suite struct LocalZoneTests {
    @Test func name_isThatOfTheVariable_orOfTheMachine() throws {
        let root = FileManager.default.temporaryDirectory.path + "/zones-\(UUID())"
        defer { try? FileManager.default.removeItem(atPath: root) }
        let zones = root + "/usr/share/zoneinfo/Europe"
        try FileManager.default.createDirectory(atPath: zones, withIntermediateDirectories: true)
        try Data().write(to: URL(filePath: "\(zones)/Paris"))
        for variable in [nil, "", ":", ":/etc/localtime", "/etc/localtime"] {
            #expect(try LocalZone.name(variable: variable, root: root) == "local")
        }
        for variable in ["Europe/Paris", ":Europe/Paris", ":/usr/share/zoneinfo/Europe/Paris"] {
            #expect(try LocalZone.name(variable: variable, root: root) == "Europe/Paris")
        }
        for variable in ["CET-1CEST", "Europe/Pariss", "../Europe/Paris", "/tmp/Paris"] {
            let failure = #expect(throws: CommandFailure.self) {
                try LocalZone.name(variable: variable, root: root)
            }
            #expect(failure?.status == .usage && failure?.message.contains("--zone") == true)
        }
    }
}
