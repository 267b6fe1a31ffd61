import FoundationEssentials
import Glibc

/// The IANA name of this process's time zone.
enum LocalZone {
    /// The name that TZ, /etc/timezone or the link /etc/localtime gives; nil for UTC, and if none of them names a zone.
    static func name(
        environment: [String: String] = ProcessInfo.processInfo.environment, root: String = ""
    ) -> String? {
        let found: String?
        if let zone = environment["TZ"], !zone.isEmpty {
            found = zone.first == ":" ? String(zone.dropFirst()) : zone
        } else if let bytes = try? String(contentsOfFile: root + "/etc/timezone", encoding: .utf8) {
            found = bytes.split(whereSeparator: \.isWhitespace).first.map(String.init)
        } else {
            found = realpath(root + "/etc/localtime", nil).map { path in
                defer { free(path) }
                return String(cString: path)
            }
        }
        guard let found else { return nil }
        let name = found.firstRange(of: "zoneinfo/").map { String(found[$0.upperBound...]) } ?? found
        let isKnown = access(root + "/usr/share/zoneinfo/" + name, R_OK) == 0
        return isKnown && !name.hasPrefix("/") && !["UTC", "Etc/UTC"].contains(name) ? name : nil
    }
}
