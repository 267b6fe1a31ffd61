package import JobModel

/// Checks the URLs and paths in a spec against policy, by their text alone.
package struct ResourcePolicy: Sendable {
    /// Gives the host (name and port) of a URL that is allowed.
    package var checkURL: @Sendable (String) throws(JobError) -> String
    /// Refuses a path that lies where nothing of this uid is read or written.
    package var checkPath: @Sendable (String, UInt32) throws(JobError) -> Void
    /// Refuses a program that is not configured (kind `invalid`), and without a name any command where none is allowed.
    package var checkProgram: @Sendable (_ name: String?) throws(JobError) -> Void

    package init(
        checkURL: @escaping @Sendable (String) throws(JobError) -> String,
        checkPath: @escaping @Sendable (String, UInt32) throws(JobError) -> Void,
        checkProgram: @escaping @Sendable (String?) throws(JobError) -> Void = { _ in }
    ) {
        self.checkURL = checkURL
        self.checkPath = checkPath
        self.checkProgram = checkProgram
    }
}

/// Checks specs before they are accepted: their form, their limits, and their URLs and paths against policy.
package struct Admission: Sendable {
    package let policy: ResourcePolicy
    private let limits: JobLimits

    package init(policy: ResourcePolicy, limits: JobLimits) {
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

    /// The job that a schedule submits for a time; without a key where it is submitted by hand.
    func scheduled(
        _ json: JSON, by key: ScheduleKey, at time: Timestamp, hasKey: Bool
    ) throws(CoreError) -> Admitted {
        let pointer = JSONPointer(["spec"])
        let spec: JobSpec
        do { spec = try JobSpecReader.scheduled(json, by: key, at: time, hasKey: hasKey) } catch {
            throw CoreError(.invalid(pointer), error.message)
        }
        return try admitted(spec, pointer, key.owner)
    }

    /// The spec of a child whose expressions are filled in; an error in it fails the list. `storedSize` is what is
    /// stored of it, in bytes, where that is not all of it.
    ///
    /// What its list's spec holds was accepted with that; limits that were lowered since hold for what comes out of
    /// expressions.
    func child(
        _ json: JSON, index: Int, of parent: Job, storedSize: Int? = nil
    ) throws(JobError) -> JobSpec {
        let pointer = JSONPointer(["source", "jobs"]).appending(index)
        let depth = parent.parentage(ofChild: index).depth
        let spec: JobSpec
        do {
            spec = try JobSpecReader.child(
                json, at: pointer, depth: depth, limits: limits, accepted: parent.writtenChild(index),
                storedSize: storedSize)
        } catch {
            throw JobError(.invalid, "The child at \(error.pointer.description.echoed) cannot run: \(error.reason)")
        }
        var check = SpecCheck(policy: policy, owner: parent.owner)
        do { try check.check(spec, pointer, isOpen: false) } catch { throw error.error }
        return spec
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
        case .url(let request), .json(let request, _): _ = try policy.checkURL(request.url)
        case .download(let download):
            for url in [download.url] + download.mirrors { _ = try policy.checkURL(url) }
            try policy.checkPath(download.path, owner)
        case .upload(let upload):
            _ = try policy.checkURL(upload.url)
            try policy.checkPath(upload.path, owner)
        case .program(let program):
            switch program.subject {
            case .named(let name): try policy.checkProgram(name)
            case .command: try policy.checkProgram(nil)
            }
        default: break
        }
        return parameters
    }

    /// The host that a source sends its first request to; nil where it sends none.
    func host(of parameters: SourceParameters) -> String? {
        switch parameters {
        case .url(let request), .json(let request, _): try? policy.checkURL(request.url)
        case .download(let download): try? policy.checkURL(download.url)
        case .upload(let upload): try? policy.checkURL(upload.url)
        default: nil
        }
    }

    /// The host that a spec's own source sends requests to, where that is known.
    func host(of spec: JobSpec) -> String? {
        guard case .source(let source) = spec.source.action else { return nil }
        switch spec.source.type {
        case .url, .json, .download, .upload: return source["url"]?.string.flatMap { try? policy.checkURL($0) }
        default: return nil
        }
    }
}

extension Job {
    /// The child that a list or an `each` is to have at `index`, as the job's spec has it; nil where an expression gives it.
    func writtenChild(_ index: Int) -> JSON? {
        guard case .source(let source)? = step?.action else { return nil }
        if let job = source["job"] { return job }
        guard let jobs = source["jobs"]?.array, jobs.indices.contains(index) else { return nil }
        return jobs[index]
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
