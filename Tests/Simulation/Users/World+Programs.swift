import JobModel

/// Programs among what users submit. Chance of its own, so that seeds without them stay as they are.
extension World {
    /// Under one seed in five.
    static func hasPrograms(_ seed: UInt64) -> Bool { seed % 8 == 0 || seed % 11 == 0 }

    /// A spec as a user wrote it, some of whose transfers are programs instead.
    func withPrograms(_ spec: JSON) -> JSON {
        guard Self.hasPrograms(seed) else { return spec }
        switch spec {
        case .array(let elements): return .array(elements.map(withPrograms))
        case .object(let members):
            if let type = spec["type"]?.string, type == "url" || type == "json", let url = spec["url"]?.string,
                !url.utf8.contains(UInt8(ascii: "{")), programRandom.chance(0.4)
            {
                return program(insteadOf: url)
            }
            var changed = JSONObject()
            for member in members.members { changed.append(member.name, withPrograms(member.value)) }
            return .object(changed)
        default: return spec
        }
    }

    /// Some hang until they are told to end. Those whose length is compared are left as they are.
    private func program(insteadOf url: String) -> JSON {
        let letter = Self.letter(of: url) ?? "f"
        if letter == "e" { return ["type": "url", "url": .string(url)] }
        let name = programRandom.chance(0.1) ? "hang" : "\(letter)"
        return ["type": "program", "program": .string(name), "arguments": ["x"]]
    }

    /// Seconds that a program takes to end when it is told to: some hear it, and some are killed for it later.
    func secondsToEnd() -> Double {
        programRandom.chance(0.6) ? programRandom.spread(0.0005, 0.5) : 5 + programRandom.spread(0.0005, 0.1)
    }
}
