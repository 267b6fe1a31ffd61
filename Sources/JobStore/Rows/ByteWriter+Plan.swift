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
            optional(then) { $0.step($1) }
            optional(fail) { $0.step($1) }
            optional(kinds) { writer, kinds in writer.list(kinds.sorted()) { $0.text($1) } }
        case .both(let inner):
            byte(1)
            step(inner)
        case .finally(let inner):
            byte(2)
            step(inner)
        }
    }

    private mutating func step(_ step: JobPlan.Step) {
        optional(step.source) { $0.byte($1.code) }
        optional(step.timeout) { $0.real($1) }
        switch step.retry {
        case .standard: byte(0)
        case .none: byte(1)
        default:
            byte(2)
            number(step.retry.max)
            for value in [step.retry.initial, step.retry.factor, step.retry.maxDelay] { real(value) }
            byte(step.retry.jitter ? 1 : 0)
        }
        byte(step.isRepeatable ? 1 : 0)
    }

    private mutating func real(_ value: Double) { number(Int64(bitPattern: value.bitPattern)) }
}

extension ByteReader {
    mutating func plan() throws(DamagedRow) -> JobPlan {
        let deadline = try hasValue() ? real() : nil
        let source = try step()
        let links = try list { reader throws(DamagedRow) in try reader.link() }
        return JobPlan(source: source, links: links, deadline: deadline)
    }

    private mutating func link() throws(DamagedRow) -> JobPlan.Link {
        switch try byte() {
        case 0:
            let then = try hasValue() ? step() : nil
            let fail = try hasValue() ? step() : nil
            let kinds = try hasValue() ? texts() : nil
            return .pair(then: then, fail: fail, on: kinds.map(Set.init))
        case 1: return .both(try step())
        case 2: return .finally(try step())
        default: throw DamagedRow()
        }
    }

    private mutating func step() throws(DamagedRow) -> JobPlan.Step {
        var source: SourceType?
        if try hasValue() {
            source = SourceType(code: try byte())
            if source == nil { throw DamagedRow() }
        }
        let timeout = try hasValue() ? real() : nil
        return JobPlan.Step(source: source, timeout: timeout, retry: try retry(), isRepeatable: try byte() == 1)
    }

    private mutating func retry() throws(DamagedRow) -> RetryPolicy {
        switch try byte() {
        case 0: .standard
        case 1: .none
        case 2:
            RetryPolicy(
                max: try count(), initial: try real(), factor: try real(), maxDelay: try real(),
                jitter: try byte() == 1)
        default: throw DamagedRow()
        }
    }

    private mutating func real() throws(DamagedRow) -> Double {
        let value = Double(bitPattern: UInt64(bitPattern: try number()))
        guard value.isFinite else { throw DamagedRow() }
        return value
    }
}
