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
            let type = try next { event throws(YAMLError) in event.type }
            if type == YAML_STREAM_END_EVENT { return documents }
            guard type == YAML_DOCUMENT_START_EVENT else { continue }
            (anchors, path) = ([:], [])
            documents.append(try next { event throws(YAMLError) in try node(event, depth: 0) })
        }
    }

    private func node(_ event: yaml_event_t, depth: Int) throws(YAMLError) -> YAMLNode {
        let place = TextPlace(event.start_mark)
        guard depth <= 100 else {
            throw YAMLError(place: place, reason: "there are more than 100 values inside each other")
        }
        let before = count
        count += 1
        let content: YAMLNode.Content
        var anchor: UnsafeMutablePointer<UInt8>?
        switch event.type {
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            let text = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            let isText = scalar.style != YAML_PLAIN_SCALAR_STYLE || scalar.tag.map(Self.text) == "tag:yaml.org,2002:str"
            (content, anchor) = (.scalar(String(decoding: text, as: UTF8.self), isText: isText), scalar.anchor)
        case YAML_SEQUENCE_START_EVENT:
            (content, anchor) = (.list(try list(depth: depth + 1)), event.data.sequence_start.anchor)
        case YAML_MAPPING_START_EVENT:
            (content, anchor) = (.map(try map(depth: depth + 1)), event.data.mapping_start.anchor)
        case YAML_ALIAS_EVENT:
            let name = Self.text(event.data.alias.anchor)
            guard let repeated = anchors[name] else {
                throw YAMLError(place: place, reason: "there is no complete value &\(name) before *\(name)")
            }
            count += repeated.count
            content = repeated.node.content
        default: throw YAMLError(place: place, reason: "a value is missing")
        }
        guard count <= 1 << 20 else {
            let reason = "there are more than \(1 << 20) values, with those that aliases repeat"
            throw YAMLError(place: place, reason: reason)
        }
        let node = YAMLNode(content, at: place)
        if let anchor { anchors[Self.text(anchor)] = (node, count - before) }
        return node
    }

    private func list(depth: Int) throws(YAMLError) -> [YAMLNode] {
        var values: [YAMLNode] = []
        while let value = try next({ event throws(YAMLError) -> YAMLNode? in
            try event.type == YAML_SEQUENCE_END_EVENT ? nil : node(event, depth: depth)
        }) {
            values.append(value)
        }
        return values
    }

    private func map(depth: Int) throws(YAMLError) -> [YAMLNode.Entry] {
        var entries: [YAMLNode.Entry] = []
        var names: Set<String> = []
        while let entry = try next({ event throws(YAMLError) in try self.entry(event, &names, depth: depth) }) {
            entries.append(entry)
        }
        return entries
    }

    /// The entry whose name the event has; nil at the end of the map.
    private func entry(
        _ event: yaml_event_t, _ names: inout Set<String>, depth: Int
    ) throws(YAMLError) -> YAMLNode.Entry? {
        if event.type == YAML_MAPPING_END_EVENT { return nil }
        let place = TextPlace(event.start_mark)
        guard case .scalar(let name, _) = try node(event, depth: depth).content else {
            throw YAMLError(place: place, reason: "the name in a map must be a single value")
        }
        path.append(name)
        guard names.insert(name).inserted else {
            let whole = path.joined(separator: ".")
            throw YAMLError(place: place, reason: "\"\(whole)\" is there twice; keep one of them")
        }
        let value = try next { event throws(YAMLError) in try node(event, depth: depth) }
        path.removeLast()
        return YAMLNode.Entry(name: name, place: place, value: value)
    }

    /// Calls `body` with the next event, which is valid only meanwhile.
    private func next<Value>(_ body: (yaml_event_t) throws(YAMLError) -> Value) throws(YAMLError) -> Value {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else {
            let state = parser.pointee
            let mark = state.error == YAML_READER_ERROR ? state.mark : state.problem_mark
            throw YAMLError(
                place: TextPlace(mark), reason: state.problem.map { String(cString: $0) } ?? "no memory is left")
        }
        defer { yaml_event_delete(&event) }
        return try body(event)
    }

    private static func text(_ bytes: UnsafeMutablePointer<UInt8>) -> String { String(cString: bytes) }
}

extension TextPlace {
    /// libyaml counts from 0.
    fileprivate init(_ mark: yaml_mark_t) { self.init(line: mark.line + 1, column: mark.column + 1) }
}
