/// The mistakes of a spec that was rejected, found by reading it again without the part that was wrong.
package enum SpecMistakes {
    package static let most = 20
    /// Specs of more bytes were hardly written by hand. Each mistake costs another reading, in all no more than one spec of
    /// the longest line.
    private static let longest = 24 << 10

    /// The mistakes in the order in which `read` finds them; one or none in a long spec.
    package static func all(in spec: JSON, _ read: (JSON) throws(SpecError) -> Void) -> [SpecError] {
        var (rest, found, seen) = (spec, [SpecError](), Set<[String]>())
        let isShort = spec.size <= longest
        // What is left out may be missing then, which is found at the same place.
        for _ in 0..<2 * most {
            do throws(SpecError) { try read(rest) } catch {
                let isNew = seen.insert(error.pointer.tokens).inserted
                if isNew { found.append(error) }
                guard isShort, found.count < most,
                    let repaired = repaired(rest, at: error.pointer.tokens[...], .job, removing: isNew)
                else { return found }
                rest = repaired
                continue
            }
            return found
        }
        return found
    }

    /// The `part` with the member at the pointer left out, or else with a substitute for the part that it belongs to.
    private static func repaired(
        _ json: JSON, at tokens: ArraySlice<String>, _ part: SpecPart, removing: Bool
    ) -> JSON? {
        guard let token = tokens.first else { return part.substitute }
        let value = json.array == nil ? json[token] : JSONPointer.index(token).flatMap { json[$0] }
        if let inner = part.part(at: token, value) {
            guard let changed = repaired(value ?? .null, at: tokens.dropFirst(), inner, removing: removing) else {
                return nil
            }
            return json.replacing(token, by: changed)
        }
        // Without these, the rest would be wrong in another way.
        let isNeeded = ["type", "command"].contains(token) || part == .step && ["return", "throw"].contains(token)
        return removing && value != nil && !isNeeded ? json.replacing(token, by: nil) : part.substitute
    }
}

extension JSON {
    fileprivate func replacing(_ token: String, by value: JSON?) -> JSON? {
        switch self {
        case .object(var object):
            object[token] = value
            return .object(object)
        case .array(var elements):
            guard let value, let index = JSONPointer.index(token), index < elements.count else { return nil }
            elements[index] = value
            return .array(elements)
        default: return nil
        }
    }
}
