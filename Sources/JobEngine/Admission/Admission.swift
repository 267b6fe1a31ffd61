package import DataSources
package import JobModel
package import JobCore

/// Checks specs before they are accepted: their form, their limits, and their URLs and paths against policy.
package struct Admission: Sendable {
    package let policy: SourceRules
    package let limits: JobLimits
    /// The only node that there is; nil for several.
    let onlyNode: String?
    /// The other nodes that have each program.
    let others: [String: [String]]

    /// The node to which a job's program is left; nil if this one has it, or no other one.
    func otherNode(for program: ProgramSpec, of job: JobID) -> String? {
        nodes(havingWhatIsNotHere: program.subject.name).map { $0[Int(job % Int64($0.count))] }
    }

    private func nodes(havingWhatIsNotHere program: String?) -> [String]? {
        (try? policy.check(program: program)) != nil ? nil : others[program ?? NodeDescription.anyCommand]
    }

    /// A spec that may be submitted.
    package struct Admitted: Sendable {
        package let spec: JobSpec
        /// Its own source.
        let source: SourceParameters?
        /// The host (name and port) of its source's first request, if it is known.
        package let host: String?
        /// The queues that its children name.
        package let queues: [NamedQueue]
        /// The jobs that it waits for.
        package let jobs: [NamedJob]
        /// Whether it, or a child, uploads a file.
        let uploads: Bool
    }

    /// Admits a client's spec; the error has all of its mistakes.
    package func spec(_ json: JSON, from caller: Caller) throws(ProtocolError) -> Admitted {
        func read(_ json: JSON) throws(SpecError) -> Admitted {
            try admit(at: JSONPointer(), owner: caller.uid) { (reader) throws(SpecError) in try reader.spec(json) }
        }
        do { return try read(json) } catch {
            if error.isForbidden { throw ProtocolError(error) }
            let mistakes = SpecMistakes.all(in: json) { (json) throws(SpecError) in _ = try read(json) }
            throw ProtocolError(error).with(mistakes: mistakes)
        }
    }

    /// Checks the spec of a client's schedule, which is at `pointer`. Returns the spec, which requires this `node` if there are
    /// others and its jobs may upload files, and the queues that these and their children name without an expression.
    package func schedule(
        _ json: JSON, at pointer: JSONPointer, owner: UInt32, node: String
    ) throws(ProtocolError) -> (spec: JSON, queues: [NamedQueue]) {
        let admitted: Admitted
        do {
            admitted = try admit(at: pointer, owner: owner) { (reader) throws(SpecError) in
                try reader.schedule(json, at: pointer)
            }
        } catch {
            throw ProtocolError(error)
        }
        var object = json.object
        if onlyNode == nil, admitted.spec.node == nil, admitted.uploads {
            object?["requires"] = ["node": .string(node)]
        }
        let queue = admitted.spec.terms.queue
        let own = TemplateText.hasExpression(queue) ? [] : [(queue, pointer.appending("queue"))]
        return (object.map(JSON.object) ?? json, own + admitted.queues)
    }

    /// Makes the job that a schedule submits for a time; without a key if a user submits it by hand.
    func scheduled(
        _ json: JSON, by key: ScheduleKey, at time: Timestamp, boot: String?, hasKey: Bool
    ) throws(ProtocolError) -> NewJob {
        let pointer = JSONPointer(["spec"])
        do {
            let admitted = try admit(at: pointer, owner: key.owner, isStored: true) { (reader) throws(JobError) in
                try reader.scheduled(json, by: key, at: time, boot: boot, hasKey: hasKey)
            }
            return NewJob(admitted, limits)
        } catch {
            throw ProtocolError(SpecError(pointer, error.message, isForbidden: error.kind == .policy))
        }
    }

    /// Admits the spec of a child, with its expressions filled in; an error in it fails the list. That of an
    /// `each` was made of a template.
    ///
    /// The list's spec was accepted with its children, so lower limits apply only to values of expressions.
    func child(
        _ json: JSON, index: Int, isOfTemplate: Bool = false, depth: Int, owner: UInt32, written: JSON?
    ) throws(JobError) -> Admitted {
        let pointer = JSONPointer(isOfTemplate ? ["source", "job"] : ["source", "jobs", String(index)])
        do {
            return try admit(at: pointer, owner: owner) { (reader) throws(SpecError) in
                try reader.child(json, at: pointer, depth: depth, accepted: written)
            }
        } catch {
            if error.isForbidden { throw JobError(.policy, error.reason) }
            let element = isOfTemplate ? " for element \(index)" : ""
            throw JobError(
                .invalid, "The child at \(error.pointer.description.echoed) cannot run\(element): \(error.reason)")
        }
    }

    /// Reads a spec at `pointer` by `read`, and checks its sources on the way. A stored spec was accepted before, maybe
    /// with other limits.
    private func admit<Failure: Error>(
        at pointer: JSONPointer, owner: UInt32, isStored: Bool = false,
        _ read: (inout JobSpecReader) throws(Failure) -> JobSpec
    ) throws(Failure) -> Admitted {
        var (own, host): (SourceParameters?, String?)
        let inspect: JobSpecReader.Inspection = { (source, place, isOpen) throws(SpecError) in
            let found = try check(source, at: place, owner: owner, isOpen: isOpen)
            // Sources of links and children are deeper.
            if place.tokens.count == pointer.tokens.count + 1 { (own, host) = (source, found) }
        }
        var reader =
            isStored
            ? .ofStored(retry: limits.retry, inspect: inspect)
            : JobSpecReader(limits: limits, onlyNode: onlyNode, inspect: inspect)
        let spec = try read(&reader)
        return Admitted(
            spec: spec, source: own, host: host, queues: reader.queues, jobs: reader.jobs, uploads: reader.uploads)
    }

    /// Checks the URLs, paths and the program of a source at `place` against policy; if it `isOpen`, except for strings
    /// with expressions. Returns the host of its first request, if it is known.
    private func check(
        _ source: SourceParameters, at place: JSONPointer, owner: UInt32, isOpen: Bool = false
    ) throws(SpecError) -> String? {
        func allow<Value>(
            _ text: String, _ member: String, _ index: Int? = nil, by check: (String) throws(JobError) -> Value
        ) throws(SpecError) -> Value? {
            if isOpen, TemplateText.hasExpression(text) { return nil }
            do { return try check(text) } catch {
                let pointer = place.appending(member)
                throw SpecError(
                    index.map { pointer.appending($0) } ?? pointer, error.message, isForbidden: error.kind == .policy)
            }
        }
        var url: RequestURL?
        switch source {
        case .url(let request), .json(let request, _): url = try allow(request.url, "url", by: policy.check)
        case .download(let download):
            url = try allow(download.url, "url", by: policy.check)
            for (index, mirror) in download.mirrors.enumerated() {
                _ = try allow(mirror, "mirrors", index, by: policy.check(url:))
            }
            try allow(download.path, "path") { (path) throws(JobError) in
                try policy.check(path: path, owner: owner, mayBeDirectory: true)
            }
        case .upload(let upload):
            url = try allow(upload.url, "url", by: policy.check)
            try allow(upload.path, "path") { (path) throws(JobError) in try policy.check(path: path, owner: owner) }
        case .program(let program):
            let name = program.subject.name
            // The other node checks the rest.
            if nodes(havingWhatIsNotHere: name) != nil { break }
            let isKnown: Void? = try allow(name ?? "", name == nil ? "command" : "program") { _ throws(JobError) in
                try policy.check(program: name)
            }
            guard isKnown != nil, let name else { break }
            for variable in program.environment?.keys.sorted() ?? [] {
                do { try policy.check(variable: variable, of: name) } catch {
                    throw SpecError(
                        place.appending("environment").appending(variable), error.message, isForbidden: true)
                }
            }
        case .list, .each, .value, .error, .timer, .job: break
        }
        return url?.hostAndPort
    }

    /// Reads and checks the source of a step, with its expressions filled in. Returns its parameters and the host of its first
    /// request, if it is known. `written` is the accepted step, which may keep the children that it names even if the limit is
    /// lower now.
    func parameters(
        _ source: JSON, written: JSON, owner: UInt32
    ) throws(JobError) -> (SourceParameters, host: String?) {
        let parameters: SourceParameters
        var limits = limits
        limits.children = max(limits.children, written.writtenChildren)
        do {
            parameters = try SourceParameters(source, mode: .expanded, limits: limits)
        } catch {
            if error.pointer.tokens == ["source", "in"], source["in"]?.array.map({ $0.count > limits.children }) == true
            {
                throw JobError(.tooLarge, "The list has more than \(limits.children) items; split it up.")
            }
            throw JobError(.invalid, "The source cannot run; see \(error.pointer.description.echoed): \(error.reason)")
        }
        do {
            return (parameters, try check(parameters, at: JSONPointer(), owner: owner))
        } catch {
            throw JobError(error.isForbidden ? .policy : .invalid, error.reason)
        }
    }
}

extension NewJob {
    package convenience init(_ admitted: Admission.Admitted, _ limits: JobLimits, subscription: SubscriptionID? = nil) {
        let spec = admitted.spec
        // A long value goes into a file.
        let immediate: Carried? =
            switch admitted.source {
            case .value(let value) where value.size <= limits.inlineResult: .success(.inline(value.utf8))
            case .error(let kind, let message): .failure(JobError(kind, message))
            default: nil
            }
        self.init(
            terms: Terms(spec, host: admitted.host), document: .spec(spec.text ?? spec.json.utf8),
            digest: spec.terms.key == nil ? 0 : spec.json.digest, immediate: immediate,
            queues: admitted.queues, jobs: admitted.jobs, uploads: admitted.uploads, subscription: subscription)
    }
}

extension JSON {
    /// The same for values that are equal, whatever the order of members, and in each life of the daemon: FNV-1a.
    package var digest: UInt64 {
        canonical(keepingNull: false).utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// The members of specs that contain values.
    private static let values: Set = ["value", "return", "json", "input", "in"]

    /// The value with sorted members. The environments of programs do not count: that of a shell differs each time. Nor
    /// does null where it means the same as an omitted member.
    private func canonical(keepingNull: Bool) -> JSON {
        switch self {
        case .array(let elements): .array(elements.map { $0.canonical(keepingNull: keepingNull) })
        case .object(let object):
            .object(
                JSONObject(
                    object.sorted.compactMap { member in
                        let keepsNull = keepingNull || Self.values.contains(member.name)
                        if object.hidesValues(of: member.name) || member.value.isNull && !keepsNull { return nil }
                        return .init(name: member.name, value: member.value.canonical(keepingNull: keepsNull))
                    }))
        default: self
        }
    }
}

extension ProgramSpec.Subject {
    /// Nil for a command.
    fileprivate var name: String? { if case .named(let name) = self { name } else { nil } }
}
