import DataSources
import JobModel
import JobCore

/// Goes through a spec that has a form, children and links included: checks its URLs, paths and programs against policy, and
/// gathers the queues that children name. Where an expression says what is named, that is known only when it is filled in.
struct SpecCheck {
    let policy: SourcePolicy
    let owner: UInt32
    /// Each once, where it is named first.
    private(set) var queues: [NamedQueue] = []
    private var known: Set<String> = []

    init(policy: SourcePolicy, owner: UInt32) {
        self.policy = policy
        self.owner = owner
    }

    struct Refusal: Error {
        let error: JobError
        let pointer: JSONPointer
    }

    /// Gives the host that the spec's own source sends requests to, where that is known.
    mutating func check(
        _ spec: JobSpec, _ pointer: JSONPointer, isOpen: Bool
    ) throws(Refusal) -> String? {
        var host: String?
        if case .source(let source) = spec.source.action {
            host = try check(source, spec.source.type, pointer.appending("source"), isOpen: isOpen)
        }
        if let links = spec.json["then"] { try check(links: links, pointer.appending("then")) }
        return host
    }

    private mutating func check(job: JSON, _ pointer: JSONPointer, isOpen: Bool) throws(Refusal) {
        if let name = job["queue"]?.string, !isOpen || !TemplateText.hasExpression(name), known.insert(name).inserted {
            queues.append(NamedQueue(name: name, pointer: pointer.appending("queue")))
        }
        if let source = job["source"] { try check(source, pointer.appending("source"), isOpen: isOpen) }
        try check(links: job["then"], pointer.appending("then"))
    }

    private mutating func check(links: JSON?, _ pointer: JSONPointer) throws(Refusal) {
        for (index, link) in (links?.array ?? []).enumerated() {
            for branch in ["then", "fail", "both", "finally"] {
                guard let source = link[branch]?["source"] else { continue }
                let inside = pointer.appending(index).appending(branch).appending("source")
                try check(source, inside, isOpen: true)
            }
        }
    }

    private mutating func check(
        _ source: JSON, _ pointer: @autoclosure () -> JSONPointer, isOpen: Bool
    ) throws(Refusal) {
        let type = source["type"]?.string.flatMap(SourceType.init(rawValue:))
        _ = try check(source, type, pointer(), isOpen: isOpen)
    }

    /// `isOpen` says that strings can hold expressions; one that does is checked when it is filled in. Gives the host that
    /// the source sends requests to, where that is known.
    private mutating func check(
        _ source: JSON, _ type: SourceType?, _ pointer: @autoclosure () -> JSONPointer, isOpen: Bool
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
                do { try policy.check(path: path, owner: owner) } catch {
                    throw Refusal(error: error, pointer: pointer().appending("path"))
                }
            }
        case .list:
            for (index, job) in (source["jobs"]?.array ?? []).enumerated() {
                try check(job: job, pointer().appending("jobs").appending(index), isOpen: isOpen)
            }
        case .each:
            if let job = source["job"] { try check(job: job, pointer().appending("job"), isOpen: true) }
        case .program:
            if let name = literal(source["program"]) {
                do { try policy.check(program: name) } catch {
                    throw Refusal(error: error, pointer: pointer().appending("program"))
                }
            }
            if let command = source["command"], !command.isNull {
                do { try policy.check(program: nil) } catch {
                    throw Refusal(error: error, pointer: pointer().appending("command"))
                }
            }
        case .value, .error, .timer, nil: break
        }
        return host
    }

    @discardableResult
    private func check(url: String, _ pointer: @autoclosure () -> JSONPointer) throws(Refusal) -> String {
        do { return try policy.check(url: url).hostAndPort } catch { throw Refusal(error: error, pointer: pointer()) }
    }
}
