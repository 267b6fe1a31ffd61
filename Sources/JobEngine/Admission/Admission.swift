package import DataSources
package import JobModel
package import JobCore

/// Checks specs before they are accepted: their form, their limits, and their URLs and paths against policy.
package struct Admission: Sendable {
    package let policy: SourcePolicy
    package let limits: JobLimits

    package init(policy: SourcePolicy, limits: JobLimits) {
        self.policy = policy
        self.limits = limits
    }

    /// A spec that may be submitted.
    package struct Admitted: Sendable {
        package let spec: JobSpec
        /// The host (name and port) that its source asks, where that is known.
        package let host: String?
        /// The queues that children in it name.
        package let queues: [NamedQueue]
    }

    /// The spec that a client wrote.
    package func spec(_ json: JSON, from caller: Caller) throws(CoreError) -> Admitted {
        let spec: JobSpec
        do { spec = try JobSpecReader.spec(json, limits: limits) } catch { throw CoreError(error) }
        return try admitted(spec, JSONPointer(), caller.uid)
    }

    /// `isOpen` says that the spec is a schedule's, whose own strings can hold expressions.
    private func admitted(
        _ spec: JobSpec, _ pointer: JSONPointer, _ owner: UInt32, isOpen: Bool = false
    ) throws(CoreError) -> Admitted {
        var check = SpecCheck(policy: policy, owner: owner)
        do {
            let host = try check.check(spec, pointer, isOpen: isOpen)
            return Admitted(spec: spec, host: host, queues: check.queues)
        } catch {
            throw CoreError(error.error, at: error.pointer)
        }
    }

    /// The spec of a schedule, as a client wrote it at `pointer`. Gives the queues that its jobs and their children go to, where
    /// no expression says that.
    package func schedule(_ json: JSON, at pointer: JSONPointer, owner: UInt32) throws(CoreError) -> [NamedQueue] {
        let spec: JobSpec
        do { spec = try JobSpecReader.schedule(json, at: pointer, limits: limits) } catch { throw CoreError(error) }
        let ofChildren = try admitted(spec, pointer, owner, isOpen: true).queues
        if TemplateText.hasExpression(spec.queue) { return ofChildren }
        return [NamedQueue(name: spec.queue, pointer: pointer.appending("queue"))] + ofChildren
    }

    /// The job that a client wrote.
    package func job(_ json: JSON, from caller: Caller) throws(CoreError) -> NewJob {
        NewJob(try spec(json, from: caller), limits)
    }

    /// The job that a schedule submits for a time; without a key where it is submitted by hand.
    func scheduled(
        _ json: JSON, by key: ScheduleKey, at time: Timestamp, hasKey: Bool
    ) throws(CoreError) -> NewJob {
        let pointer = JSONPointer(["spec"])
        let spec: JobSpec
        do { spec = try JobSpecReader.scheduled(json, by: key, at: time, hasKey: hasKey) } catch {
            throw CoreError(.invalid(pointer), error.message)
        }
        return NewJob(try admitted(spec, pointer, key.owner), limits)
    }

    /// The spec of a child whose expressions are filled in; an error in it fails the list.
    ///
    /// What its list's spec holds was accepted with that; limits that were lowered since hold for what comes out of
    /// expressions.
    func child(
        _ json: JSON, index: Int, depth: Int, owner: UInt32, written: JSON?
    ) throws(JobError) -> Admitted {
        let pointer = JSONPointer(["source", "jobs"]).appending(index)
        let spec: JobSpec
        do {
            spec = try JobSpecReader.child(
                json, at: pointer, depth: depth, limits: limits, accepted: written)
        } catch {
            throw JobError(.invalid, "The child at \(error.pointer.description.echoed) cannot run: \(error.reason)")
        }
        var check = SpecCheck(policy: policy, owner: owner)
        do {
            let host = try check.check(spec, pointer, isOpen: false)
            return Admitted(spec: spec, host: host, queues: check.queues)
        } catch {
            throw error.error
        }
    }

    /// The parameters of a step whose expressions are filled in; `isStored` says that it has none, but what was accepted before.
    /// `written` is the step as it was accepted: a limit that was lowered since lets it have the children that it names.
    func parameters(
        _ source: JSON, written: JSON, owner: UInt32, isStored: Bool
    ) throws(JobError) -> SourceParameters {
        let parameters: SourceParameters
        var limits = limits
        limits.children = max(limits.children, written.writtenChildren)
        do {
            parameters = try SourceParameters(source, mode: .expanded, isStored: isStored, limits: limits)
        } catch {
            if error.pointer.tokens == ["source", "in"], source["in"]?.array.map({ $0.count > limits.children }) == true
            {
                throw JobError(.tooLarge, "The list has more than \(limits.children) items; split it up.")
            }
            throw JobError(.invalid, "The source cannot run; see \(error.pointer.description.echoed): \(error.reason)")
        }
        switch parameters {
        case .url(let request), .json(let request, _): try policy.check(url: request.url)
        case .download(let download):
            for url in [download.url] + download.mirrors { try policy.check(url: url) }
            try policy.check(path: download.path, owner: owner)
        case .upload(let upload):
            try policy.check(url: upload.url)
            try policy.check(path: upload.path, owner: owner)
        case .program(let program):
            switch program.subject {
            case .named(let name): try policy.check(program: name)
            case .command: try policy.check(program: nil)
            }
        default: break
        }
        return parameters
    }

    /// The host that a source sends its first request to; nil where it sends none.
    func host(of parameters: SourceParameters) -> String? {
        switch parameters {
        case .url(let request), .json(let request, _): try? policy.check(url: request.url).hostAndPort
        case .download(let download): try? policy.check(url: download.url).hostAndPort
        case .upload(let upload): try? policy.check(url: upload.url).hostAndPort
        default: nil
        }
    }
}

extension NewJob {
    package init(_ admitted: Admission.Admitted, _ limits: JobLimits, subscription: SubscriptionID? = nil) {
        let spec = admitted.spec
        self.init(
            terms: Terms(spec, host: admitted.host), document: .spec(spec.text ?? spec.json.utf8),
            digest: spec.key == nil ? 0 : spec.json.digest, immediate: Self.immediate(spec, limits),
            queues: admitted.queues, subscription: subscription)
    }

    /// The outcome of a source that says it; nil for others, and for long values, which go into files.
    private static func immediate(_ spec: JobSpec, _ limits: JobLimits) -> Carried? {
        guard case .source(let source) = spec.source.action, spec.source.type == .value || spec.source.type == .error,
            let parameters = try? SourceParameters(source, mode: .expanded, isStored: true, limits: limits)
        else { return nil }
        switch parameters {
        case .value(let value):
            let text = value.utf8
            return text.count <= limits.inlineResult ? .success(.inline(text)) : nil
        case .error(let kind, let message): return .failure(JobError(kind, message))
        default: return nil
        }
    }
}

extension JSON {
    /// The same for values that are equal, whatever the order of members, and in each life of the daemon.
    fileprivate var digest: UInt64 {
        switch self {
        case .null: 1
        case .bool(let flag): flag ? 2 : 3
        case .number(let number): Self.digest(of: number.text, 4)
        case .string(let text): Self.digest(of: text, 5)
        case .array(let elements): elements.reduce(6) { Self.mixed($0 ^ $1.digest) &* 31 }
        case .object(let object):
            object.members.reduce(7) { $0 &+ Self.mixed(Self.digest(of: $1.name, 8) ^ $1.value.digest &* 0x9E37_79B9) }
        }
    }

    /// FNV-1a.
    private static func digest(of text: String, _ kind: UInt64) -> UInt64 {
        mixed(text.utf8.reduce(0xCBF2_9CE4_8422_2325 ^ kind) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 })
    }

    /// The end of SplitMix64.
    private static func mixed(_ value: UInt64) -> UInt64 {
        var value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}

extension CoreError {
    init(_ fault: SpecError) {
        self.init(.invalid(fault.pointer), fault.reason)
    }

    /// The error for a URL or path that policy refuses or that is not valid.
    init(_ error: JobError, at pointer: JSONPointer) {
        self.init(error.kind == .policy ? .forbidden(pointer) : .invalid(pointer), error.message)
    }
}
