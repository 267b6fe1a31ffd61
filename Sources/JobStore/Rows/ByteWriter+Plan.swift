import JobModel

/// A plan as it stands in a row: some bytes for each step.
extension ByteWriter {
    mutating func plan(_ plan: JobPlan) {
        optional(plan.deadline) { $0.real($1) }
        step(plan.source)
        list(plan.links) { $0.link($1) }
    }

    private mutating func link(_ link: JobPlan.Link) {
        switch link {
        case .pair(let then, let fail, let kinds):
            byte(0)
            byte((then == nil ? 0 : 1) | (fail == nil ? 0 : 2) | (kinds == nil ? 0 : 4))
            if let then { step(then) }
            if let fail { step(fail) }
            if let kinds { list(kinds.sorted()) { $0.text($1) } }
        case .both(let inner):
            byte(1)
            step(inner)
        case .finally(let inner):
            byte(2)
            step(inner)
        }
    }

    private mutating func step(_ step: JobPlan.Step) {
        let isStandard = step.retry == .standard
        let isNone = step.retry == .none
        byte(
            (step.timeout == nil ? 0 : 1) | (isStandard ? 2 : 0) | (isNone ? 4 : 0) | (step.isRepeatable ? 8 : 0)
                | (step.source == nil ? 0 : 16))
        if let source = step.source { byte(source.code) }
        if let timeout = step.timeout { real(timeout) }
        guard !isStandard, !isNone else { return }
        number(step.retry.max)
        for value in [step.retry.initial, step.retry.factor, step.retry.maxDelay] { real(value) }
        byte(step.retry.jitter ? 1 : 0)
    }

    private mutating func real(_ value: Double) { number(Int64(bitPattern: value.bitPattern)) }
}

extension ByteReader {
    mutating func plan() throws(DamagedRow) -> JobPlan {
        let deadline = try optional { reader throws(DamagedRow) in try reader.real() }
        let source = try step()
        let links = try list { reader throws(DamagedRow) in try reader.link() }
        return JobPlan(source: source, links: links, deadline: deadline)
    }

    private mutating func link() throws(DamagedRow) -> JobPlan.Link {
        switch try byte() {
        case 0:
            let flags = try byte()
            let then = try flags & 1 != 0 ? step() : nil
            let fail = try flags & 2 != 0 ? step() : nil
            guard flags & 4 != 0 else { return .pair(then: then, fail: fail, on: nil) }
            return .pair(
                then: then, fail: fail, on: Set(try list { reader throws(DamagedRow) in try reader.text() }))
        case 1: return .both(try step())
        case 2: return .finally(try step())
        default: throw DamagedRow()
        }
    }

    private mutating func step() throws(DamagedRow) -> JobPlan.Step {
        let flags = try byte()
        var step = JobPlan.Step(source: nil, timeout: nil, retry: .standard, isRepeatable: flags & 8 != 0)
        if flags & 16 != 0 {
            guard let source = SourceType(code: try byte()) else { throw DamagedRow() }
            step.source = source
        }
        if flags & 1 != 0 { step.timeout = try real() }
        if flags & 2 != 0 { return step }
        if flags & 4 != 0 {
            step.retry = .none
            return step
        }
        step.retry = RetryPolicy(
            max: try count(), initial: try real(), factor: try real(), maxDelay: try real(), jitter: try byte() == 1)
        return step
    }

    private mutating func real() throws(DamagedRow) -> Double {
        let value = Double(bitPattern: UInt64(bitPattern: try number()))
        guard value.isFinite else { throw DamagedRow() }
        return value
    }
}
