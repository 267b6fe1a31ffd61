import Glibc
package import JobModel

/// The rules of time zones in the files of tzdata. Calls block.
package enum ZoneFiles {
    private static let directory = "/usr/share/zoneinfo"

    /// The rules of a schedule's zone; throws if it cannot be used.
    package static func rules(of zone: String) throws(SpecError) -> ZoneRules {
        if zone == "UTC" { return .utc }
        // Without a dot, it names no file outside of the directory.
        let isName =
            zone.utf8.count <= 64
            && zone.utf8.allSatisfy { byte in
                (48...57).contains(byte) || (65...90).contains(byte & 0xDF) || "+-_/".utf8.contains(byte)
            }
        // Those below `right` count leap seconds.
        guard isName, !zone.hasPrefix("right/") else {
            throw flaw("\"\(zone.echoed)\" is not the name of a zone; write it as in Europe/Berlin.")
        }
        // The machine's own zone; without that file, it keeps UTC.
        let path = zone == "local" ? "/etc/localtime" : "\(directory)/\(zone)"
        if zone == "local", access(path, F_OK) != 0 { return .utc }
        guard let bytes = try? RegularFile.contents(of: path, atMost: ZoneRules.longest) else {
            let isThere = access(directory + "/Etc/UTC", R_OK) == 0 || access(directory + "/UTC", R_OK) == 0
            throw flaw(
                isThere
                    ? "There is no zone \"\(zone.echoed)\" in \(directory); write it as in Europe/Berlin."
                    : "No zones are known, as there are none in \(directory); install tzdata, or use UTC.")
        }
        do { return try ZoneRules(tzif: bytes) } catch {
            throw flaw("The zone \"\(zone.echoed)\" cannot be used, as of its file \(error.reason).")
        }
    }

    private static func flaw(_ reason: String) -> SpecError { SpecError(JSONPointer(["zone"]), reason) }
}
