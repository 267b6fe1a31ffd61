import JobModel

/// A plan as it stands in a row: some bytes for each step.
extension ByteCoder {
    mutating func plan(_ plan: JobPlan?) throws(DamagedRow) -> JobPlan {
        let deadline = try has(plan?.deadline) ? real(plan?.deadline) : nil
        let source = try step(plan?.source)
        let links = try list(plan?.links) { coder, link throws(DamagedRow) in try coder.link(link) }
        return JobPlan(source: source, links: links, deadline: deadline)
    }

    private mutating func link(_ link: JobPlan.Link?) throws(DamagedRow) -> JobPlan.Link {
        var (form, first, fail): (UInt8?, JobPlan.Step?, JobPlan.Step?)
        var kinds: [String]?
        switch link {
        case nil: break
        case .pair(let then, let otherwise, let on): (form, first, fail, kinds) = (0, then, otherwise, on?.sorted())
        case .both(let step): (form, first) = (1, step)
        case .finally(let step): (form, first) = (2, step)
        }
        switch try byte(form) {
        case 0:
            return .pair(
                then: try has(first) ? step(first) : nil, fail: try has(fail) ? step(fail) : nil,
                on: try has(kinds) ? Set(texts(kinds)) : nil)
        case 1: return .both(try step(first))
        case 2: return .finally(try step(first))
        default: throw DamagedRow()
        }
    }

    private mutating func step(_ step: JobPlan.Step?) throws(DamagedRow) -> JobPlan.Step {
        var source: SourceType?
        if try has(step?.source) {
            source = SourceType(code: try byte(step?.source?.code))
            if source == nil { throw DamagedRow() }
        }
        return JobPlan.Step(
            source: source, timeout: try has(step?.timeout) ? real(step?.timeout) : nil,
            retry: try retry(step?.retry), isRepeatable: try flag(step?.isRepeatable))
    }

    private mutating func retry(_ retry: RetryPolicy?) throws(DamagedRow) -> RetryPolicy {
        switch try byte(retry.map { $0 == .standard ? 0 : $0 == RetryPolicy.none ? 1 : 2 }) {
        case 0: .standard
        case 1: .none
        case 2:
            RetryPolicy(
                max: try count(retry?.max), initial: try real(retry?.initial), factor: try real(retry?.factor),
                maxDelay: try real(retry?.maxDelay), jitter: try flag(retry?.jitter))
        default: throw DamagedRow()
        }
    }

    mutating func real(_ value: Double?) throws(DamagedRow) -> Double {
        let bits = try number(value.map { Int64(bitPattern: $0.bitPattern) })
        let value = Double(bitPattern: UInt64(bitPattern: bits))
        guard value.isFinite || !isReading else { throw DamagedRow() }
        return value
    }
}
