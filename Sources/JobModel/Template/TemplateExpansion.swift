/// Replaces expressions by their values.
///
/// An expression belongs to the innermost link around it. So a link's own strings are filled in when it runs, while the
/// links of its child jobs are left for those; only `item`, `index` and `schedule` reach into them. What will be expanded once more
/// gets its values with braces escaped, so nothing is ever expanded twice.
package struct TemplateExpansion: Sendable {
    /// Bytes of values that one expansion may fill in; without a bound each link could double what came into it.
    package static let largest = 64 << 20
    /// How deep the value that an expansion makes may be nested: a request line may have 64 levels, and so may what is
    /// filled into it.
    package static let deepest = 128

    /// The values that are known now.
    package var values: [TemplateText.Name: JSON]
    /// What the expanded value may take in memory once it is made anew of its text (``JSON/parsedCost``). It takes little
    /// where one result is filled in many times, until it is read from the store.
    private let budget: Int
    /// What may be filled in anyhow, as the template may have come when longer ones were allowed.
    private let least: Int

    package init(
        _ values: [TemplateText.Name: JSON], budget: Int = JobLimits().composedValues, atLeast least: Int = 0
    ) {
        self.values = values
        self.budget = budget
        self.least = least
    }

    /// A source's members with the link's expressions filled in.
    package func source(_ json: JSON) throws(JobError) -> JSON {
        try run(of: json) { (run, pass) throws(JobError) in try run.source(json, pass) }
    }

    /// A value (of `return`, or of `throw`) with the link's expressions filled in.
    package func value(_ json: JSON) throws(JobError) -> JSON {
        try run(of: json) { (run, pass) throws(JobError) in try run.strings(json, pass, inURL: false) }
    }

    /// The spec of an `each` child with `item` and `index` filled in, or of a schedule's job with `schedule`, in its links
    /// too.
    package func child(_ json: JSON) throws(JobError) -> JSON {
        try run(of: json) { (run, pass) throws(JobError) in try run.job(json, pass) }
    }

    private func run(
        of template: JSON, _ body: (inout ExpansionRun, ExpansionRun.Pass) throws(JobError) -> JSON
    ) throws(JobError) -> JSON {
        let own = template.parsedCost
        // What is of more values than any may have cannot be read from the store again.
        let left = min(max(budget.saturatingSubtracting(own), least), JobLimits.mostValues.saturatingSubtracting(own))
        var run = ExpansionRun(values: values, left: Self.largest, budget: left)
        let expanded = try body(&run, ExpansionRun.Pass(names: Set(values.keys), isLast: true))
        guard expanded.nests(atMost: Self.deepest) else {
            throw JobError(
                .tooLarge,
                "The expressions make a value that nests deeper than \(Self.deepest) levels; point into what came in.")
        }
        return expanded
    }
}
