import ArgumentParser
import JobModel

/// The flag for header fields of a request.
struct HeaderOptions: ParsableArguments {
    @Option(
        name: [.customLong("header"), .customShort("H")], parsing: .singleValue,
        help: ArgumentHelp("A header field of the request; may be given again for more.", valueName: "name: value"))
    var header: [String] = []

    /// The member `headers` of a source, or nil without any. Fields of one name become one, with commas.
    var headers: JSON? {
        if header.isEmpty { return nil }
        var object = JSONObject()
        for (name, value) in header.compactMap(Self.parse) {
            let known = object.names.first { $0.lowercased() == name.lowercased() }
            if let known, let earlier = object[known]?.string {
                object[known] = .string(earlier + ", " + value)
            } else {
                object[name] = .string(value)
            }
        }
        return .object(object)
    }

    func validate() throws {
        if let wrong = header.first(where: { Self.parse($0) == nil }) {
            throw ValidationError("\"\(wrong)\" is no header field; write it as \"Name: value\".")
        }
    }

    private static func parse(_ field: String) -> (name: String, value: String)? {
        guard let colon = field.firstIndex(of: ":"), colon != field.startIndex else { return nil }
        let value = field[field.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        return (String(field[..<colon]), String(value))
    }
}
