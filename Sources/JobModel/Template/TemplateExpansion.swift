/// Replaces expressions with their values.
///
/// An expression belongs to the innermost enclosing link. A link's own strings are expanded when it runs; the links of
/// its child jobs are left for those, and only `item`, `index` and `schedule` reach into them. Values that will be
/// expanded once more get their braces escaped, so nothing is ever expanded twice.
package struct TemplateExpansion: Sendable {
    /// The maximum bytes that one expansion inserts; without a bound each link could double its input.
    package static let largest = 64 << 20
    /// The maximum nesting of an expanded value: a request line may have 64 levels, and so may an inserted value.
    package static let deepest = 128

    /// The values known now.
    package var values: [TemplateText.Name: JSON]
    /// The maximum memory of the expanded value, parsed from its text (``JSON/parsedCost``).
    /// A result inserted many times takes little until it is read from the store.
    private let budget: Int

    package init(_ values: [TemplateText.Name: JSON], budget: Int = JobLimits().composedValues) {
        self.values = values
        self.budget = budget
    }

    /// Expands the link's expressions in a source's members.
    package func source(_ json: JSON) throws(JobError) -> JSON { try run(of: json, .source) }

    /// Expands the link's expressions in a value of `return` or `throw`.
    package func value(_ json: JSON) throws(JobError) -> JSON { try run(of: json, nil) }

    /// Expands `item` and `index` in an `each` child's spec, or `schedule` in a schedule's job, links included.
    package func child(_ json: JSON) throws(JobError) -> JSON { try run(of: json, .job) }

    private func run(of template: JSON, _ part: SpecPart?) throws(JobError) -> JSON {
        let own = template.parsedCost
        // A larger value could not be read from the store again.
        var run = ExpansionRun(
            values: values, left: Self.largest, budget: min(budget, JobLimits.mostValues).saturatingSubtracting(own))
        let expanded = try run.expand(template, part, ExpansionRun.Pass(names: Set(values.keys), isLast: true))
        guard expanded.nests(atMost: Self.deepest) else {
            throw JobError(
                .tooLarge,
                "The expressions make a value that nests deeper than \(Self.deepest) levels; point to a part of it.")
        }
        return expanded
    }
}
