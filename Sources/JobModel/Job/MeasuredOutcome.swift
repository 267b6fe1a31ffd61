/// How large an outcome is, which is reckoned once: for a value of a MiB that takes milliseconds.
package struct OutcomeSize: Sendable, Hashable {
    /// Bytes of its JSON.
    package let text: Int64
    /// About what it takes in memory once it is read: an array of small numbers takes sixteen times as much as its text.
    package let memory: Int64

    package init(text: Int64, memory: Int64) {
        self.text = text
        self.memory = memory
    }
}

/// An outcome with its size.
struct MeasuredOutcome: Sendable, Hashable {
    let outcome: Outcome
    let size: OutcomeSize

    /// `size` is what ``Result/measuredSize`` says, where somebody asked before.
    init(_ outcome: Outcome, size: OutcomeSize? = nil) {
        self.outcome = outcome
        self.size = size ?? outcome.measuredSize
    }
}

extension Outcome {
    /// Bytes of its JSON. Looks at every value.
    package var storedSize: Int64 { Int64(json.size) }

    /// Its size. Looks at every value.
    package var measuredSize: OutcomeSize {
        let text = storedSize
        // An error has few values, and texts that are bounded.
        guard case .success(let value) = self else { return OutcomeSize(text: text, memory: text) }
        return OutcomeSize(text: text, memory: Int64(value.parsedCost))
    }
}
