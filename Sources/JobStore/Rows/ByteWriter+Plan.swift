import JobModel

/// A plan as it stands in a row: some bytes for each step.
extension ByteWriter {
    mutating func plan(_ plan: JobPlan) {
        optional(plan.deadline)
        step(plan.source)
        number(plan.links.count)
        for link in plan.links {
            switch link {
            case .pair(let then, let fail, let kinds):
                byte(0)
                byte((then == nil ? 0 : 1) | (fail == nil ? 0 : 2) | (kinds == nil ? 0 : 4))
                if let then { step(then) }
                if let fail { step(fail) }
                guard let kinds else { continue }
                number(kinds.count)
                for kind in kinds.sorted() { text(kind) }
            case .both(let inner):
                byte(1)
                step(inner)
            case .finally(let inner):
                byte(2)
                step(inner)
            }
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

    private mutating func optional(_ value: Double?) {
        byte(value == nil ? 0 : 1)
        if let value { real(value) }
    }
}

extension ByteReader {
    mutating func plan() -> JobPlan? {
        guard let hasDeadline = byte() else { return nil }
        let deadline = hasDeadline == 1 ? real() : nil
        guard hasDeadline == 0 || deadline != nil, let source = step(), let count = count() else { return nil }
        var links: [JobPlan.Link] = []
        for _ in 0..<count {
            guard let link = link() else { return nil }
            links.append(link)
        }
        return JobPlan(source: source, links: links, deadline: deadline)
    }

    private mutating func link() -> JobPlan.Link? {
        switch byte() {
        case 0:
            guard let flags = byte() else { return nil }
            let then = flags & 1 != 0 ? step() : nil
            let fail = flags & 2 != 0 ? step() : nil
            guard flags & 1 == 0 || then != nil, flags & 2 == 0 || fail != nil else { return nil }
            guard flags & 4 != 0 else { return .pair(then: then, fail: fail, on: nil) }
            guard let count = count() else { return nil }
            var kinds: Set<String> = []
            for _ in 0..<count {
                guard let kind = text() else { return nil }
                kinds.insert(kind)
            }
            return .pair(then: then, fail: fail, on: kinds)
        case 1: return step().map(JobPlan.Link.both)
        case 2: return step().map(JobPlan.Link.finally)
        default: return nil
        }
    }

    private mutating func step() -> JobPlan.Step? {
        guard let flags = byte() else { return nil }
        var step = JobPlan.Step(source: nil, timeout: nil, retry: .standard, isRepeatable: flags & 8 != 0)
        if flags & 16 != 0 {
            guard let source = byte().flatMap(SourceType.init(code:)) else { return nil }
            step.source = source
        }
        if flags & 1 != 0 {
            guard let timeout = real() else { return nil }
            step.timeout = timeout
        }
        if flags & 2 != 0 { return step }
        if flags & 4 != 0 {
            step.retry = .none
            return step
        }
        guard let max = count(), let initial = real(), let factor = real(), let maxDelay = real(), let jitter = byte()
        else { return nil }
        step.retry = RetryPolicy(max: max, initial: initial, factor: factor, maxDelay: maxDelay, jitter: jitter == 1)
        return step
    }

    private mutating func real() -> Double? {
        number().map { Double(bitPattern: UInt64(bitPattern: $0)) }.flatMap { $0.isFinite ? $0 : nil }
    }
}
