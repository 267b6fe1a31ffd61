import JobModel
import TestSupport

extension JSON {
    /// Any value, at most `depth` levels deep.
    static func random(depth: Int, using generator: inout SeededGenerator) -> JSON {
        switch Int.random(in: 0..<(depth > 0 ? 8 : 5), using: &generator) {
        case 0: return .null
        case 1: return .bool(generator.chance(0.5))
        case 2: return .number(JSONNumber(unchecked: numberText(using: &generator)))
        case 3, 4: return .string(text(using: &generator))
        case 5, 6:
            return .array(
                (0..<Int.random(in: 0..<5, using: &generator)).map { _ in random(depth: depth - 1, using: &generator) })
        default:
            return .object(
                JSONObject(
                    (0..<Int.random(in: 0..<5, using: &generator)).map { _ in
                        JSONObject.Member(
                            name: text(using: &generator), value: random(depth: depth - 1, using: &generator))
                    }))
        }
    }

    /// Any text, with what has to be escaped and characters of every length in UTF-8 among it.
    static func text(using generator: inout SeededGenerator) -> String {
        let scalars: [Unicode.Scalar] = [
            "a", "Z", "0", " ", "\"", "\\", "/", "{", "}", "~", "\u{0}", "\u{8}", "\n", "\r", "\t", "\u{1F}", "\u{7F}",
            "\u{E4}", "\u{301}", "\u{2028}", "\u{FEFF}", "\u{FFFF}", "\u{1F600}", "\u{10FFFF}",
        ]
        var text = ""
        for _ in 0..<Int.random(in: 0..<8, using: &generator) { text.unicodeScalars.append(generator.pick(scalars)) }
        return text
    }

    /// Any number in JSON's notation.
    static func numberText(using generator: inout SeededGenerator) -> String {
        var text = generator.chance(0.3) ? "-" : ""
        text += String(UInt64.random(in: 0...(1 << UInt64.random(in: 0..<64, using: &generator)), using: &generator))
        if generator.chance(0.3) { text += ".0" + String(Int.random(in: 0..<1000, using: &generator)) }
        if generator.chance(0.3) {
            text += generator.pick(["e", "E", "e+", "E-"]) + String(Int.random(in: 0..<400, using: &generator))
        }
        return text
    }
}
