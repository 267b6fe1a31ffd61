/// A part of a spec with a form of its own.
enum SpecPart {
    case job, links, link, step, source, jobs

    /// The part below this one at `token`; nil if it is a plain member.
    func part(at token: String, _ value: JSON?) -> SpecPart? {
        switch (self, token) {
        case (.job, "source"), (.step, "source"): .source
        case (.job, "then"): .links
        case (.links, _): .link
        case (.link, "then"), (.link, "fail"), (.link, "both"), (.link, "finally"): .step
        case (.source, "jobs"): .jobs
        case (.source, "job") where value?.object != nil: .job
        case (.jobs, _): .job
        default: nil
        }
    }

    /// A correct value in place of a wrong one, about whose result nothing is known.
    var substitute: JSON {
        let source: JSON = ["type": .string(SourceType.error.rawValue)]
        return switch self {
        case .source: source
        case .job, .step: ["source": source]
        case .link: ["both": ["source": source]]
        case .links, .jobs: []
        }
    }
}
