import CYaml
import JobModel

extension YAMLNode {
    /// The documents of a text in UTF-8, with at most 1,048,576 values in all, at most 100 inside each other.
    ///
    /// An alias counts as all values that it repeats. The names in a map are single values, each there once.
    package static func documents(in text: [UInt8]) throws(YAMLError) -> [YAMLNode] {
        try text.withUnsafeBufferPointer { bytes throws(YAMLError) in try Composer(bytes).documents() }
    }
}

/// Makes nodes of libyaml's events.
private final class Composer {
    private struct Event {
        enum Kind {
            case scalar(String, isText: Bool)
            case alias(String)
            case list
            case map
            case end
            case document
            case endOfText
            case other
        }

        let kind: Kind
        var anchor: String?
        let place: TextPlace
    }

    // libyaml keeps pointers to it.
    private let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
    private var anchors: [String: (node: YAMLNode, count: Int)] = [:]
    /// The values so far.
    private var count = 0
    /// The names of the maps around the next value.
    private var path: [String] = []

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        precondition(yaml_parser_initialize(parser) == 1, "no memory is left")
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, bytes.baseAddress, bytes.count)
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
    }

    func documents() throws(YAMLError) -> [YAMLNode] {
        var documents: [YAMLNode] = []
        while true {
            switch try next().kind {
            case .document:
                (anchors, path) = ([:], [])
                documents.append(try node(try next(), depth: 0))
            case .endOfText: return documents
            default: continue
            }
        }
    }

    private func node(_ event: Event, depth: Int) throws(YAMLError) -> YAMLNode {
        guard depth <= 100 else {
            throw YAMLError(place: event.place, reason: "there are more than 100 values inside each other")
        }
        let before = count
        count += 1
        let content: YAMLNode.Content
        switch event.kind {
        case .scalar(let text, let isText): content = .scalar(text, isText: isText)
        case .list: content = .list(try list(depth: depth + 1))
        case .map: content = .map(try map(depth: depth + 1))
        case .alias(let name):
            guard let repeated = anchors[name] else {
                throw YAMLError(place: event.place, reason: "there is no complete value &\(name) before *\(name)")
            }
            count += repeated.count
            content = repeated.node.content
        default: throw YAMLError(place: event.place, reason: "a value is missing")
        }
        guard count <= 1 << 20 else {
            let reason = "there are more than \(1 << 20) values, with those that aliases repeat"
            throw YAMLError(place: event.place, reason: reason)
        }
        let node = YAMLNode(content, at: event.place)
        if let anchor = event.anchor { anchors[anchor] = (node, count - before) }
        return node
    }

    private func list(depth: Int) throws(YAMLError) -> [YAMLNode] {
        var values: [YAMLNode] = []
        while true {
            let event = try next()
            if case .end = event.kind { return values }
            values.append(try node(event, depth: depth))
        }
    }

    private func map(depth: Int) throws(YAMLError) -> [YAMLNode.Entry] {
        var entries: [YAMLNode.Entry] = []
        var names: Set<String> = []
        while true {
            let event = try next()
            if case .end = event.kind { return entries }
            guard case .scalar(let name, _) = try node(event, depth: depth).content else {
                throw YAMLError(place: event.place, reason: "the name in a map must be a single value")
            }
            path.append(name)
            guard names.insert(name).inserted else {
                let whole = path.joined(separator: ".")
                throw YAMLError(place: event.place, reason: "\"\(whole)\" is there twice; keep one of them")
            }
            let value = try node(try next(), depth: depth)
            path.removeLast()
            entries.append(YAMLNode.Entry(name: name, place: event.place, value: value))
        }
    }

    private func next() throws(YAMLError) -> Event {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else {
            let state = parser.pointee
            let mark = state.error == YAML_READER_ERROR ? state.mark : state.problem_mark
            throw YAMLError(
                place: TextPlace(mark), reason: state.problem.map { String(cString: $0) } ?? "no memory is left")
        }
        defer { yaml_event_delete(&event) }
        let place = TextPlace(event.start_mark)
        switch event.type {
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            let text = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            let isText = scalar.style != YAML_PLAIN_SCALAR_STYLE || scalar.tag.map(Self.text) == "tag:yaml.org,2002:str"
            return Event(
                kind: .scalar(String(decoding: text, as: UTF8.self), isText: isText),
                anchor: scalar.anchor.map(Self.text), place: place)
        case YAML_SEQUENCE_START_EVENT:
            return Event(kind: .list, anchor: event.data.sequence_start.anchor.map(Self.text), place: place)
        case YAML_MAPPING_START_EVENT:
            return Event(kind: .map, anchor: event.data.mapping_start.anchor.map(Self.text), place: place)
        case YAML_ALIAS_EVENT: return Event(kind: .alias(Self.text(event.data.alias.anchor)), place: place)
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT: return Event(kind: .end, place: place)
        case YAML_DOCUMENT_START_EVENT: return Event(kind: .document, place: place)
        case YAML_STREAM_END_EVENT: return Event(kind: .endOfText, place: place)
        default: return Event(kind: .other, place: place)
        }
    }

    private static func text(_ bytes: UnsafeMutablePointer<UInt8>) -> String { String(cString: bytes) }
}

extension TextPlace {
    /// libyaml counts from 0.
    fileprivate init(_ mark: yaml_mark_t) { self.init(line: mark.line + 1, column: mark.column + 1) }
}
