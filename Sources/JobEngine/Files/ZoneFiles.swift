import Glibc
package import JobModel

/// The rules of time zones in the files of tzdata. Calls block.
package enum ZoneFiles {
    /// Why a zone cannot be used, as a sentence.
    package struct Flaw: Error, Equatable {
        package let reason: String
    }

    /// The name of the machine's own zone.
    private static let local = "local"

    private static let directory = "/usr/share/zoneinfo"

    package static func rules(of zone: String) throws(Flaw) -> ZoneRules {
        if zone == "UTC" { return .utc }
        guard isName(zone) || zone == local else {
            throw Flaw(reason: "\"\(zone.echoed)\" is not the name of a zone; write it as in Europe/Berlin.")
        }
        let path = zone == local ? "/etc/localtime" : "\(directory)/\(zone)"
        // A machine without that file keeps UTC.
        if zone == local, access(path, F_OK) != 0 { return .utc }
        guard let bytes = try? RegularFile.contents(of: path, atMost: ZoneRules.longest) else {
            let isThere = access(directory + "/Etc/UTC", R_OK) == 0 || access(directory + "/UTC", R_OK) == 0
            throw Flaw(
                reason: isThere
                    ? "There is no zone \"\(zone.echoed)\" in \(directory); write it as in Europe/Berlin."
                    : "No zones are known, as there are none in \(directory); install tzdata, or use UTC.")
        }
        do { return try ZoneRules(tzif: bytes) } catch {
            throw Flaw(reason: "The zone \"\(zone.echoed)\" cannot be used, as of its file \(error.reason).")
        }
    }

    /// Whether this may name a zone, and not another file in the directory or outside of it.
    private static func isName(_ zone: String) -> Bool {
        let parts = zone.split(separator: "/", omittingEmptySubsequences: false)
        let isPlain = parts.allSatisfy { part in
            (65...90).contains((part.utf8.first ?? 0) & 0xDF)
                && part.utf8.allSatisfy { byte in
                    (48...57).contains(byte) || (65...90).contains(byte & 0xDF) || [43, 45, 95].contains(byte)
                }
        }
        return isPlain && zone.utf8.count <= 64 && parts.count <= 4
            && !["posix", "right", "posixrules", "localtime"].contains(parts.first)
    }
}
