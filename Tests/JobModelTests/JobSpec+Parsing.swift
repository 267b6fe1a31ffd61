import JobModel

extension JobSpec {
    /// The spec that `text` writes as JSON.
    static func parsing(_ text: String, limits: JobLimits = JobLimits()) throws -> JobSpec {
        try JobSpecReader.spec(JSON(parsing: text), limits: limits)
    }

    /// A spec whose source gives 1, with these links and members beside it.
    static func chain(_ links: String, _ members: String = "") throws -> JobSpec {
        try parsing(
            #"{"source":{"type":"value","value":1},"then":[\#(links)]\#(members.isEmpty ? "" : ",")\#(members)}"#)
    }
}

/// What is wrong with the spec that `text` writes; nil where it is accepted.
func fault(in text: String, limits: JobLimits = JobLimits()) throws -> SpecError? {
    let json = try JSON(parsing: text)
    do {
        _ = try JobSpecReader.spec(json, limits: limits)
        return nil
    } catch {
        return error
    }
}
