/// A plan as it stands in a row: some bytes for each step.
extension JobPlan {
    private static let form: UInt8 = 1

    /// The plan as bytes.
    package var bytes: [UInt8] {
        var writer = PlanWriter()
        writer.byte(Self.form)
        writer.optional(deadline)
        writer.step(source)
        writer.count(links.count)
        for link in links {
            switch link {
            case .pair(let then, let fail, let on):
                writer.byte(0)
                writer.byte((then == nil ? 0 : 1) | (fail == nil ? 0 : 2) | (on == nil ? 0 : 4))
                if let then { writer.step(then) }
                if let fail { writer.step(fail) }
                if let on {
                    writer.count(on.count)
                    for kind in on.sorted() { writer.text(kind) }
                }
            case .both(let step):
                writer.byte(1)
                writer.step(step)
            case .finally(let step):
                writer.byte(2)
                writer.step(step)
            }
        }
        return writer.bytes
    }

    /// The plan that `bytes` hold; nil where they are damaged.
    package init?(bytes: UnsafeRawBufferPointer) {
        var reader = PlanReader(bytes)
        guard reader.byte() == Self.form, let deadline = reader.optional(), let source = reader.step(),
            let count = reader.count()
        else { return nil }
        var links: [Link] = []
        for _ in 0..<count {
            guard let link = reader.link() else { return nil }
            links.append(link)
        }
        guard reader.isAtEnd else { return nil }
        self.init(source: source, links: links, deadline: deadline.value)
    }
}

private struct PlanWriter {
    private(set) var bytes: [UInt8] = []

    mutating func byte(_ value: UInt8) { bytes.append(value) }

    mutating func count(_ value: Int) {
        byte(UInt8(truncatingIfNeeded: value))
        byte(UInt8(truncatingIfNeeded: value >> 8))
    }

    mutating func number(_ value: Double) {
        withUnsafeBytes(of: value.bitPattern.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func optional(_ value: Double?) {
        byte(value == nil ? 0 : 1)
        if let value { number(value) }
    }

    mutating func text(_ value: String) {
        count(value.utf8.count)
        bytes.append(contentsOf: value.utf8)
    }

    mutating func step(_ step: JobPlan.Step) {
        let isStandard = step.retry == .standard
        let isNone = !isStandard && step.retry == .none
        byte(
            (step.timeout == nil ? 0 : 1) | (isStandard ? 2 : 0) | (isNone ? 4 : 0) | (step.isRepeatable ? 8 : 0)
                | (step.source == nil ? 0 : 16))
        if let source = step.source { byte(source.code) }
        if let timeout = step.timeout { number(timeout) }
        guard !isStandard, !isNone else { return }
        count(step.retry.max)
        number(step.retry.initial)
        number(step.retry.factor)
        number(step.retry.maxDelay)
        byte(step.retry.jitter ? 1 : 0)
    }
}

private struct PlanReader {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    mutating func byte() -> UInt8? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func count() -> Int? {
        guard let low = byte(), let high = byte() else { return nil }
        return Int(low) | Int(high) << 8
    }

    mutating func number() -> Double? {
        guard bytes.count - position >= 8 else { return nil }
        defer { position += 8 }
        let pattern = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
        let value = Double(bitPattern: UInt64(littleEndian: pattern))
        return value.isFinite ? value : nil
    }

    /// A number that may be left out; nil where the bytes are damaged.
    mutating func optional() -> (value: Double?, Void)? {
        switch byte() {
        case 0: (nil, ())
        case 1: number().map { ($0, ()) }
        default: nil
        }
    }

    mutating func text() -> String? {
        guard let count = count(), bytes.count - position >= count else { return nil }
        defer { position += count }
        return String(decoding: bytes[position..<position + count], as: UTF8.self)
    }

    mutating func step() -> JobPlan.Step? {
        guard let flags = byte() else { return nil }
        var step = JobPlan.Step(source: nil, timeout: nil, retry: .standard, isRepeatable: flags & 8 != 0)
        if flags & 16 != 0 {
            guard let source = byte().flatMap(SourceType.init(code:)) else { return nil }
            step.source = source
        }
        if flags & 1 != 0 {
            guard let timeout = number() else { return nil }
            step.timeout = timeout
        }
        if flags & 2 != 0 { return step }
        if flags & 4 != 0 {
            step.retry = .none
            return step
        }
        guard let max = count(), let initial = number(), let factor = number(), let maxDelay = number(),
            let jitter = byte()
        else { return nil }
        step.retry = RetryPolicy(max: max, initial: initial, factor: factor, maxDelay: maxDelay, jitter: jitter == 1)
        return step
    }

    mutating func link() -> JobPlan.Link? {
        switch byte() {
        case 0:
            guard let flags = byte() else { return nil }
            var then: JobPlan.Step?
            var fail: JobPlan.Step?
            var kinds: Set<String>?
            if flags & 1 != 0 {
                guard let step = step() else { return nil }
                then = step
            }
            if flags & 2 != 0 {
                guard let step = step() else { return nil }
                fail = step
            }
            if flags & 4 != 0 {
                guard let count = count() else { return nil }
                var named: Set<String> = []
                for _ in 0..<count {
                    guard let kind = text() else { return nil }
                    named.insert(kind)
                }
                kinds = named
            }
            return .pair(then: then, fail: fail, on: kinds)
        case 1: return step().map(JobPlan.Link.both)
        case 2: return step().map(JobPlan.Link.finally)
        default: return nil
        }
    }
}

extension RetryPolicy {
    /// No retry, with the standard's pauses.
    package static let none = RetryPolicy(
        max: 0, initial: RetryPolicy.standard.initial, factor: RetryPolicy.standard.factor,
        maxDelay: RetryPolicy.standard.maxDelay, jitter: RetryPolicy.standard.jitter)
}

extension SourceType {
    /// The number that stands for it in stored plans; a number is never used again for another type.
    package var code: UInt8 {
        switch self {
        case .url: 0
        case .download: 1
        case .json: 2
        case .list: 3
        case .each: 4
        case .value: 5
        case .error: 6
        case .timer: 7
        case .upload: 8
        case .program: 9
        }
    }

    package init?(code: UInt8) {
        guard let type = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = type
    }
}
