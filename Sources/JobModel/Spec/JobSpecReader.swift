/// A queue that a spec names, and the place that names it.
package typealias NamedQueue = (name: String, pointer: JSONPointer)
/// A job that a spec waits for, and the place that names it.
package typealias NamedJob = (id: JobID, pointer: JSONPointer)

/// Checks a whole spec with its children, links and expressions, and makes a ``JobSpec`` of it.
package struct JobSpecReader {
    /// Called with each source of a spec, after its form was checked: of links and children too. `isOpen` tells that its strings
    /// can hold expressions.
    package typealias Inspection =
        (_ source: SourceParameters, _ pointer: JSONPointer, _ isOpen: Bool) throws(SpecError) -> Void

    /// The most jobs that one spec names.
    private static let mostJobs = 1000

    private let limits: JobLimits
    /// The only node that there is; nil for several.
    private let onlyNode: String?
    private let inspect: Inspection?
    /// The queues that children name, each once. One that an expression names is known only when that is filled in.
    package private(set) var queues: [NamedQueue] = []
    /// The jobs that it waits for, each once, except those that an expression names.
    package private(set) var jobs: [NamedJob] = []
    private var jobIDs: Set<JobID> = []
    /// Whether it, or a child, uploads a file, which is on the node where the spec was given.
    package private(set) var uploads = false
    /// Children that the spec may hold in all, those of its children included.
    private let mostChildren: Int
    /// Children found in the spec so far.
    private var children = 0

    package init(limits: JobLimits, onlyNode: String? = nil, inspect: Inspection? = nil) {
        self.limits = limits
        self.onlyNode = onlyNode
        mostChildren = limits.children * limits.depth
        self.inspect = inspect
    }

    /// A reader of what was accepted before, maybe by a daemon that had other limits.
    package static func ofStored(retry: RetryPolicy = .standard, inspect: Inspection? = nil) -> JobSpecReader {
        var limits = JobLimits()
        limits.retry = retry
        limits.children = .max >> 8
        limits.links = .max
        limits.depth = 255
        return JobSpecReader(limits: limits, inspect: inspect)
    }

    /// The context of the part being read.
    private struct Context {
        /// The names for expressions; nil if strings are literal.
        var scope: TemplateScope?
        /// The number of enclosing lists.
        var depth = 0
        var mode: MemberReader.Mode
        /// Whether the expressions were checked before, when this spec or its parent's was accepted.
        var isChecked = false
        /// Whether it is a whole spec to be stored.
        var isNew = false
        /// The job's bound on an attempt and its retry policy, or the step's own.
        var timeout: Double?
        var retry: RetryPolicy?
    }

    /// Reads a client's spec; `pointer` is its location in the params.
    package static func spec(
        _ json: JSON, at pointer: JSONPointer = JSONPointer(), limits: JobLimits
    ) throws(SpecError) -> JobSpec {
        var reader = JobSpecReader(limits: limits)
        return try reader.spec(json, at: pointer)
    }

    /// The same by this reader, for the one spec that it reads.
    package mutating func spec(_ json: JSON, at pointer: JSONPointer = JSONPointer()) throws(SpecError) -> JobSpec {
        let spec = try job(json, at: pointer, Context(scope: nil, mode: .literal, isNew: true))
        if let key = spec.terms.key, key.utf8.starts(with: ScheduleKey.jobKeyPrefix.utf8) {
            throw SpecError(
                pointer.appending("key"),
                "Keys that begin with \"\(ScheduleKey.jobKeyPrefix)\" are reserved for schedules; use another one.")
        }
        return spec
    }

    /// The spec of a schedule, whose strings can hold expressions.
    package mutating func schedule(
        _ json: JSON, at pointer: JSONPointer = JSONPointer()
    ) throws(SpecError) -> JobSpec {
        for name in ["key", "notBefore", "watch"] where json[name]?.isNull == false {
            throw SpecError(
                pointer.appending(name),
                "A schedule's spec has no \"\(name)\", as the schedule itself decides about that.")
        }
        return try job(json, at: pointer, Context(scope: .schedule, mode: .template))
    }

    /// The spec of a job that a schedule submits for `time`, or for a boot, of the schedule's spec. It has a key unless it is
    /// submitted by hand. The schedule's was accepted, so the reader is ``ofStored(inspect:)``: what is filled in are texts,
    /// which make nothing of it longer or deeper.
    package mutating func scheduled(
        _ json: JSON, by schedule: ScheduleKey, at time: Timestamp, boot: String? = nil, hasKey: Bool
    ) throws(JobError) -> JobSpec {
        let about: JSON = ["name": .string(schedule.name), "time": .string(time.description)]
        var written = try TemplateExpansion([.schedule: about]).child(json)
        if hasKey, var object = written.object {
            object["key"] = .string(schedule.jobKey(at: time, boot: boot))
            written = .object(object)
        }
        let context = Context(scope: nil, mode: .expanded, isChecked: true, isNew: true)
        do { return try self.job(written, at: JSONPointer(["spec"]), context) } catch {
            if error.isForbidden { throw JobError(.policy, error.reason) }
            throw JobError(.invalid, "The spec cannot run; see \(error.pointer.description.echoed): \(error.reason)")
        }
    }

    /// The spec of a child, its expressions filled in; `depth` counts the lists around it. `accepted` is what its expressions were
    /// filled into, which was accepted before: no limit that was lowered since refuses what that holds.
    package mutating func child(
        _ json: JSON, at pointer: JSONPointer, depth: Int, accepted: JSON? = nil
    ) throws(SpecError) -> JobSpec {
        var context = Context(scope: nil, depth: depth, mode: .expanded, isChecked: true)
        do { return try job(json, at: pointer, context) } catch {
            guard let accepted, !error.isForbidden else { throw error }
            context.mode = .template
            var present = JobSpecReader(limits: limits)
            // Within the present limits, it is the expressions' values that are refused.
            guard (try? present.job(accepted, at: pointer, context)) == nil else { throw error }
            context.mode = .expanded
            var stored = JobSpecReader.ofStored(retry: limits.retry, inspect: inspect)
            let spec = try stored.job(json, at: pointer, context)
            (queues, jobs, uploads) = (stored.queues, stored.jobs, stored.uploads)
            return spec
        }
    }

    private mutating func job(
        _ json: JSON, at pointer: JSONPointer, _ context: Context
    ) throws(SpecError) -> JobSpec {
        let reader = try MemberReader(json, at: pointer, mode: context.mode)
        try reader.allow(JobSpec.members)
        try check(json, .job, at: pointer, context)
        guard let written = reader.value("source") else { throw reader.missing("source") }
        var inside = context
        inside.isNew = false
        inside.timeout = try JobSpec.duration(reader, "timeout")
        inside.retry = try RetryPolicy(reader, "retry", defaults: limits.retry)
        let source = try source(written, at: reader.pointer(to: "source"), inside)
        let links = try links(reader, inside, after: ResultShape(of: source.source, written))
        let spec = try JobSpec(
            reader, source: source, links: links, isNew: context.isNew, isChild: context.depth > 0)
        guard let node = spec.node, let onlyNode, node != onlyNode,
            context.mode != .template || !TemplateText.hasExpression(node)
        else { return spec }
        throw SpecError(
            pointer.appending("requires").appending("node"),
            "There is no node \"\(node.echoed)\": \"\(onlyNode)\" runs its jobs alone; leave \"requires\" out.")
    }

    private mutating func links(
        _ reader: MemberReader, _ context: Context, after source: @autoclosure () -> ResultShape
    ) throws(SpecError) -> [JobPlan.Link] {
        guard let written = reader.value("then") else { return [] }
        guard let elements = written.array else {
            throw reader.fault("then", "\"then\" must be an array of links, not \(written.typeName).")
        }
        guard elements.count <= limits.links else {
            throw reader.fault("then", "A job has at most \(limits.links) links.")
        }
        var inner = context
        inner.mode = .template
        inner.scope = context.isChecked ? nil : context.scope?.intoLinks ?? TemplateScope()
        var shape = source()
        var links: [JobPlan.Link] = []
        for (index, element) in elements.enumerated() {
            links.append(try link(element, at: reader.pointer(to: "then").appending(index), inner, &shape))
        }
        return links
    }

    /// Reads a link; `shape` is that of its successful input, then of its successful result.
    private mutating func link(
        _ json: JSON, at pointer: JSONPointer, _ context: Context, _ shape: inout ResultShape
    ) throws(SpecError) -> JobPlan.Link {
        let reader = try MemberReader(json, at: pointer)
        try reader.allow(["then", "fail", "on", "both", "finally"])
        var steps: [String: (plan: JobPlan.Step, shape: ResultShape)] = [:]
        for name in ["then", "fail", "both", "finally"] {
            guard let written = reader.value(name) else { continue }
            var inner = context
            inner.scope?.names[.job] = name == "finally" ? .jobAtEnd : .job
            if name != "fail" { inner.scope?.names[.input] = name == "then" ? shape : .unknown }
            if name != "then" { inner.scope?.names[.error] = name == "fail" ? .error : .unknown }
            steps[name] = try step(written, at: reader.pointer(to: name), inner)
        }
        let kinds = try reader.strings("on", atMost: 64) { kind in
            JobError.Kind(rawValue: kind).isWellFormed || context.isChecked
                ? nil : "\"\(kind.echoed)\" is not an error kind; use lower-case words joined by hyphens."
        }
        guard kinds == nil || steps["fail"] != nil else {
            throw reader.fault("on", "\"on\" limits a \"fail\" link; this link has none.")
        }
        switch (steps["both"], steps["finally"], steps.count) {
        case (let both?, nil, 1):
            shape = both.shape
            return .both(both.plan)
        case (nil, let finally?, 1): return .finally(finally.plan)
        case (nil, nil, 1...2):
            let (then, fail) = (steps["then"], steps["fail"])
            shape = then?.shape ?? shape
            if let fail, fail.shape != shape { shape = .unknown }
            return .pair(then: then?.plan, fail: fail?.plan, on: kinds.map(Set.init))
        default:
            throw SpecError(
                pointer, "A link is \"then\", \"fail\", both of these, or one of \"both\" and \"finally\" alone.")
        }
    }

    private mutating func step(
        _ json: JSON, at pointer: JSONPointer, _ context: Context
    ) throws(SpecError) -> (plan: JobPlan.Step, shape: ResultShape) {
        let reader = try MemberReader(json, at: pointer, mode: .literal)
        try reader.allow(["source", "return", "throw", "timeout", "retry"])
        let actions = ["source", "return", "throw"].filter { name in
            // Null is a value that a step can return.
            name == "return" ? reader.object[name] != nil : reader.value(name) != nil
        }
        guard actions.count == 1, let action = actions.first, let written = reader.object[action] else {
            throw SpecError(pointer, "A step is exactly one of \"source\", \"return\" and \"throw\".")
        }
        var context = context
        context.timeout = try JobSpec.duration(reader, "timeout") ?? context.timeout
        context.retry = try RetryPolicy(reader, "retry", defaults: limits.retry) ?? context.retry
        let inside = reader.pointer(to: action)
        if action == "source" {
            let step = try source(written, at: inside, context)
            return (step, ResultShape(of: step.source, written))
        }
        try context.scope?.check(written, at: inside)
        let step = JobPlan.Step(
            source: nil, timeout: context.timeout, retry: context.retry ?? limits.retry)
        if action == "throw" {
            let members = try MemberReader(written, at: inside, mode: context.mode)
            try members.allow(["kind", "message"])
            _ = try SourceParameters.kind(members)
            _ = try members.requiredString("message", atMost: .max)
            return (step, .unknown)
        }
        return (step, ResultShape(of: written))
    }

    private mutating func source(
        _ json: JSON, at pointer: JSONPointer, _ context: Context
    ) throws(SpecError) -> JobPlan.Step {
        let reader = try MemberReader(json, at: pointer, mode: context.mode)
        let type = try SourceParameters.type(reader)
        let parameters = try SourceParameters(type, reader, limits)
        try inspect?(parameters, pointer, context.mode == .template)
        try check(json, .source, at: pointer, context)
        uploads = uploads || type == .upload
        switch parameters {
        case .list(let list):
            let inner = try enter(list.elements.count, at: pointer, context)
            for (index, child) in list.elements.enumerated() {
                try self.child(child, at: pointer.appending("jobs").appending(index), inner)
            }
        case .each(_, let job):
            var inner = try enter(1, at: pointer, context)
            inner.mode = .template
            inner.scope = context.isChecked ? nil : (context.scope ?? TemplateScope()).forEach
            try child(job, at: pointer.appending("job"), inner)
        case .job(let id):
            if json["job"]?.int != nil { try name(id, at: pointer.appending("job")) }
        default:
            if context.mode == .literal { try SourceParameters.refuseExpressions(in: reader) }
        }
        let isIdempotent = parameters.isIdempotent(reader)
        return JobPlan.Step(
            source: type, timeout: context.timeout,
            retry: context.retry ?? (isIdempotent ? limits.retry : .none),
            isRepeatable: isIdempotent || (context.retry?.max ?? 0) > 0)
    }

    private mutating func child(_ json: JSON, at pointer: JSONPointer, _ context: Context) throws(SpecError) {
        let spec = try job(json, at: pointer, context)
        guard json["queue"]?.isNull == false,
            context.mode != .template || !TemplateText.hasExpression(spec.terms.queue),
            !queues.contains(where: { $0.name == spec.terms.queue })
        else { return }
        queues.append((spec.terms.queue, pointer.appending("queue")))
    }

    private mutating func name(_ job: JobID, at pointer: JSONPointer) throws(SpecError) {
        guard jobIDs.insert(job).inserted else { return }
        guard jobIDs.count <= Self.mostJobs else {
            throw SpecError(pointer, "A spec waits for at most \(Self.mostJobs) jobs; name the rest by an expression.")
        }
        jobs.append((job, pointer))
    }

    /// Counts children, and returns the context inside of their list.
    private mutating func enter(
        _ count: Int, at pointer: JSONPointer, _ context: Context
    ) throws(SpecError) -> Context {
        guard context.depth < limits.depth else {
            throw SpecError(pointer, "Lists are nested deeper than \(limits.depth) levels.")
        }
        children += count
        guard children <= mostChildren else {
            throw SpecError(pointer, "The spec holds more than \(mostChildren) children in all.")
        }
        var inner = context
        inner.depth += 1
        return inner
    }

    /// Checks the expressions in members of a part that are no parts themselves.
    private func check(
        _ json: JSON, _ part: SpecPart, at pointer: JSONPointer, _ context: Context
    ) throws(SpecError) {
        guard let scope = context.scope, let object = json.object else { return }
        for member in object.members where part.part(at: member.name, member.value) == nil {
            try scope.check(member.value, at: pointer.appending(member.name))
        }
    }
}
