import JobModel
import Yams

/// Job specs written in YAML.
enum YAMLSpecs {
    /// The most values in a file; aliases could make it endless.
    private static let mostValues = 100_000

    /// The specs of a file: its documents, or the elements of an only one.
    static func documents(_ bytes: [UInt8], in name: String) throws(CommandFailure) -> [SpecDocuments.Document] {
        let text = String(decoding: bytes, as: UTF8.self)
        var values: [(json: JSON, marks: [[String]: TextPlace])] = []
        do {
            var room = mostValues
            var nodes = try Yams.compose_all(yaml: text)
            while let node = nodes.next() {
                var marks: [[String]: TextPlace] = [:]
                values.append((try json(node, at: [], &marks, &room), marks))
            }
            if let error = nodes.error { throw error }
        } catch let error as YamlError {
            throw CommandFailure(.badData, "\(name) is not YAML: \(reason(error))")
        } catch {
            throw CommandFailure(.badData, "\(name) cannot be read as a spec: \(error)")
        }
        return values.enumerated().flatMap { index, value -> [SpecDocuments.Document] in
            let text = SpecText(name: name, bytes: bytes, marks: value.marks)
            guard values.count == 1, case .array(let specs) = value.json else {
                let location = values.count == 1 ? name : "document \(index + 1)"
                return [.init(location: location, spec: SpecDocuments.spec(value.json), text: text)]
            }
            return specs.enumerated().map {
                .init(location: "element \($0)", spec: SpecDocuments.spec($1), text: text.element($0))
            }
        }
    }

    private static func reason(_ error: YamlError) -> String {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            "line \(mark.line), column \(mark.column): \(problem)"
        case .duplicatedKeysInMapping(let names, let context):
            "the map at line \(context.mark.line) has \"\(names.sorted().first ?? "")\" twice; keep one of them."
        default: "\(error)"
        }
    }

    private static func json(
        _ node: Node, at path: [String], _ marks: inout [[String]: TextPlace], _ room: inout Int
    ) throws -> JSON {
        room -= 1
        guard room > 0, path.count < 64 else {
            throw CommandFailure(.badData, "it has more than \(mostValues) values, or more than 64 levels.")
        }
        if let mark = node.mark { marks[path] = TextPlace(line: mark.line, column: mark.column) }
        switch node {
        case .mapping(let mapping):
            var object = JSONObject()
            for (key, value) in mapping {
                let name = key.scalar?.string ?? ""
                object.append(name, try json(value, at: path + [name], &marks, &room))
                // A mistake in a member is one of its name, too.
                if let mark = key.mark { marks[path + [name]] = TextPlace(line: mark.line, column: mark.column) }
            }
            return .object(object)
        case .sequence(let sequence):
            var elements: [JSON] = []
            for (index, element) in sequence.enumerated() {
                elements.append(try json(element, at: path + [String(index)], &marks, &room))
            }
            return .array(elements)
        case .scalar(let scalar):
            return switch node.tag.description {
            case "tag:yaml.org,2002:null": .null
            case "tag:yaml.org,2002:bool": node.bool.map(JSON.bool) ?? .string(scalar.string)
            case "tag:yaml.org,2002:int": node.int?.json ?? .string(scalar.string)
            case "tag:yaml.org,2002:float": node.float.flatMap { $0.isFinite ? $0.json : nil } ?? .string(scalar.string)
            default: .string(scalar.string)
            }
        case .alias: throw CommandFailure(.badData, "an alias names nothing.")
        }
    }
}
