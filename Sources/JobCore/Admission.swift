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
    }

    /// The spec that a client wrote.
    package func spec(_ json: JSON, from caller: Caller) throws(CoreError) -> Admitted {
        let spec: JobSpec
        do { spec = try JobSpecReader.spec(json, limits: limits) } catch { throw CoreError(error) }
        do {
            return Admitted(spec: spec, host: try checkPolicy(of: spec, JSONPointer(), caller.uid, isOpen: false))
        } catch {
            throw CoreError(error.error, at: error.pointer)
        }
    }

    /// The spec of a schedule, as a client wrote it at `pointer`. Gives the queue that its jobs go to, where no expression
    /// says that.
    package func schedule(_ json: JSON, at pointer: JSONPointer, owner: UInt32) throws(CoreError) -> String? {
        let spec: JobSpec
        do { spec = try JobSpecReader.schedule(json, at: pointer, limits: limits) } catch { throw CoreError(error) }
        do { try checkPolicy(of: spec, pointer, owner, isOpen: true) } catch {
            throw CoreError(error.error, at: error.pointer)
        }
        return TemplateText.hasExpression(spec.queue) ? nil : spec.queue
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
        do {
            return Admitted(spec: spec, host: try checkPolicy(of: spec, pointer, key.owner, isOpen: false))
        } catch {
            throw CoreError(error.error, at: error.pointer)
        }
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
        do { try checkPolicy(of: spec, pointer, parent.owner, isOpen: false) } catch { throw error.error }
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

    private struct Refusal: Error {
        let error: JobError
        let pointer: JSONPointer
    }

    /// Gives the host that the spec's own source sends requests to, where that is known.
    @discardableResult
    private func checkPolicy(
        of spec: JobSpec, _ pointer: JSONPointer, _ owner: UInt32, isOpen: Bool
    ) throws(Refusal) -> String? {
        var host: String?
        if case .source(let source) = spec.source.action {
            host = try check(source, spec.source.type, pointer.appending("source"), owner, isOpen: isOpen)
        }
        if let links = spec.json["then"] { try check(links: links, pointer.appending("then"), owner) }
        return host
    }

    private func check(job: JSON, _ pointer: JSONPointer, _ owner: UInt32, isOpen: Bool) throws(Refusal) {
        if let source = job["source"] { try check(source, pointer.appending("source"), owner, isOpen: isOpen) }
        try check(links: job["then"], pointer.appending("then"), owner)
    }

    private func check(links: JSON?, _ pointer: JSONPointer, _ owner: UInt32) throws(Refusal) {
        for (index, link) in (links?.array ?? []).enumerated() {
            for branch in ["then", "fail", "both", "finally"] {
                guard let source = link[branch]?["source"] else { continue }
                let inside = pointer.appending(index).appending(branch).appending("source")
                try check(source, inside, owner, isOpen: true)
            }
        }
    }

    private func check(
        _ source: JSON, _ pointer: @autoclosure () -> JSONPointer, _ owner: UInt32, isOpen: Bool
    ) throws(Refusal) {
        let type = source["type"]?.string.flatMap(SourceType.init(rawValue:))
        _ = try check(source, type, pointer(), owner, isOpen: isOpen)
    }

    /// `isOpen` says that strings can hold expressions; one that does is checked when it is filled in. Gives the host that
    /// the source sends requests to, where that is known.
    private func check(
        _ source: JSON, _ type: SourceType?, _ pointer: @autoclosure () -> JSONPointer, _ owner: UInt32, isOpen: Bool
    ) throws(Refusal) -> String? {
        var host: String?
        func literal(_ json: JSON?) -> String? {
            guard let text = json?.string, !isOpen || !TemplateText.hasExpression(text) else { return nil }
            return text
        }
        switch type {
        case .url, .json, .download, .upload:
            if let url = literal(source["url"]) { host = try check(url: url, pointer().appending("url")) }
            for (index, mirror) in (source["mirrors"]?.array ?? []).enumerated() {
                guard let url = literal(mirror) else { continue }
                try check(url: url, pointer().appending("mirrors").appending(index))
            }
            if let path = literal(source["path"]) {
                do { try policy.checkPath(path, owner) } catch {
                    throw Refusal(error: error, pointer: pointer().appending("path"))
                }
            }
        case .list:
            for (index, job) in (source["jobs"]?.array ?? []).enumerated() {
                try check(job: job, pointer().appending("jobs").appending(index), owner, isOpen: isOpen)
            }
        case .each:
            if let job = source["job"] { try check(job: job, pointer().appending("job"), owner, isOpen: true) }
        case .program:
            if let name = literal(source["program"]) {
                do { try policy.checkProgram(name) } catch {
                    throw Refusal(error: error, pointer: pointer().appending("program"))
                }
            }
            if let command = source["command"], !command.isNull {
                do { try policy.checkProgram(nil) } catch {
                    throw Refusal(error: error, pointer: pointer().appending("command"))
                }
            }
        case .value, .error, .timer, nil: break
        }
        return host
    }

    @discardableResult
    private func check(url: String, _ pointer: @autoclosure () -> JSONPointer) throws(Refusal) -> String {
        do { return try policy.checkURL(url) } catch { throw Refusal(error: error, pointer: pointer()) }
    }
}

extension Job {
    /// The child that a list or an `each` is to have at `index`, as the job's spec has it; nil where an expression gives it.
    fileprivate func writtenChild(_ index: Int) -> JSON? {
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
