package import DataSources
package import JobModel

/// Checks specs before they are accepted: their form, their limits, and what policy says to the URLs and paths in them.
package struct Admission: Sendable {
    private let library: SourceLibrary
    private let limits: JobLimits

    package init(library: SourceLibrary, limits: JobLimits) {
        self.library = library
        self.limits = limits
    }

    /// A spec that may be submitted.
    package struct Admitted: Sendable {
        package let spec: JobSpec
        /// The host that its source asks, where that is known; lists have a lane of their own, and so have timers.
        let lane: String?
    }

    /// The spec that a client wrote.
    package func spec(_ json: JSON, from caller: Caller) throws(EngineError) -> Admitted {
        let spec: JobSpec
        do { spec = try JobSpecReader.spec(json, limits: limits) } catch { throw EngineError(error) }
        do {
            let url = try checkPolicy(of: spec, JSONPointer(), caller.uid, isOpen: false)
            let lane =
                switch spec.source.type {
                case .list, .each: HostBoard.lists
                case .timer: HostBoard.timers
                default: url?.hostAndPort
                }
            return Admitted(spec: spec, lane: lane)
        } catch {
            throw EngineError(error.error, at: error.place)
        }
    }

    /// The spec of a child whose expressions are filled in; what is wrong with it fails the list.
    func child(_ json: JSON, index: Int, of parent: Job) throws(JobError) -> JobSpec {
        let place = JSONPointer(["source", "jobs"]).appending(index)
        let spec: JobSpec
        do {
            spec = try JobSpecReader.child(
                json, at: place, depth: (parent.parent?.depth ?? 0) + 1, limits: limits)
        } catch {
            throw JobError(.invalid, "The child at \(error.place) cannot run: \(error.reason)")
        }
        do { try checkPolicy(of: spec, place, parent.owner, isOpen: false) } catch { throw error.error }
        return spec
    }

    /// The parameters of a step whose expressions are filled in.
    func parameters(_ source: JSON, owner: UInt32) throws(JobError) -> SourceParameters {
        let parameters: SourceParameters
        do { parameters = try SourceParameters(source, mode: .expanded, limits: limits) } catch {
            if error.place.tokens == ["source", "in"], source["in"]?.array.map({ $0.count > limits.children }) == true {
                throw JobError(.tooLarge, "The list has more than \(limits.children) items; split it up.")
            }
            throw JobError(.invalid, "The source cannot run; see \(error.place): \(error.reason)")
        }
        switch parameters {
        case .url(let request), .json(let request, _): try library.check(url: request.url)
        case .download(let download):
            for url in [download.url] + download.mirrors { try library.check(url: url) }
            try library.check(path: download.path, owner: owner)
        default: break
        }
        return parameters
    }

    private struct Refusal: Error {
        let error: JobError
        let place: JSONPointer
    }

    /// Gives the URL that the spec's own source asks, where that is known.
    @discardableResult
    private func checkPolicy(
        of spec: JobSpec, _ place: JSONPointer, _ owner: UInt32, isOpen: Bool
    ) throws(Refusal) -> RequestURL? {
        var url: RequestURL?
        if case .source(let source) = spec.source.action {
            url = try check(source, place.appending("source"), owner, isOpen: isOpen)
        }
        if let links = spec.json["then"] { try check(links: links, place.appending("then"), owner) }
        return url
    }

    private func check(job: JSON, _ place: JSONPointer, _ owner: UInt32, isOpen: Bool) throws(Refusal) {
        if let source = job["source"] { try check(source, place.appending("source"), owner, isOpen: isOpen) }
        try check(links: job["then"], place.appending("then"), owner)
    }

    private func check(links: JSON?, _ place: JSONPointer, _ owner: UInt32) throws(Refusal) {
        for (index, link) in (links?.array ?? []).enumerated() {
            for branch in ["then", "fail", "both", "finally"] {
                guard let source = link[branch]?["source"] else { continue }
                let inside = place.appending(index).appending(branch).appending("source")
                try check(source, inside, owner, isOpen: true)
            }
        }
    }

    /// `isOpen` says that strings can hold expressions; one that does is checked when it is filled in. Gives the URL that
    /// the source asks, where that is known.
    @discardableResult
    private func check(
        _ source: JSON, _ place: @autoclosure () -> JSONPointer, _ owner: UInt32, isOpen: Bool
    ) throws(Refusal) -> RequestURL? {
        var asked: RequestURL?
        func literal(_ json: JSON?) -> String? {
            guard let text = json?.string, !isOpen || !TemplateText.holdsExpression(text) else { return nil }
            return text
        }
        switch source["type"]?.string.flatMap(SourceType.init(rawValue:)) {
        case .url, .json, .download:
            if let url = literal(source["url"]) { asked = try check(url: url, place().appending("url")) }
            for (index, mirror) in (source["mirrors"]?.array ?? []).enumerated() {
                guard let url = literal(mirror) else { continue }
                try check(url: url, place().appending("mirrors").appending(index))
            }
            if let path = literal(source["path"]) {
                do { try library.check(path: path, owner: owner) } catch {
                    throw Refusal(error: error, place: place().appending("path"))
                }
            }
        case .list:
            for (index, job) in (source["jobs"]?.array ?? []).enumerated() {
                try check(job: job, place().appending("jobs").appending(index), owner, isOpen: isOpen)
            }
        case .each:
            if let job = source["job"] { try check(job: job, place().appending("job"), owner, isOpen: true) }
        case .value, .error, .timer, nil: break
        }
        return asked
    }

    @discardableResult
    private func check(url: String, _ place: @autoclosure () -> JSONPointer) throws(Refusal) -> RequestURL {
        do { return try library.check(url: url) } catch { throw Refusal(error: error, place: place()) }
    }
}

extension EngineError {
    init(_ fault: SpecError) {
        self.init(.invalid(fault.place), fault.reason)
    }

    /// A refusal by policy, or a URL or path that is none.
    init(_ error: JobError, at place: JSONPointer) {
        self.init(error.kind == .policy ? .forbidden(place) : .invalid(place), error.message)
    }
}
