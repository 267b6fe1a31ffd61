/// An outcome with the size of its JSON, which is reckoned once: for a value of a MiB that takes milliseconds.
struct MeasuredOutcome: Sendable, Hashable {
    let outcome: Outcome
    /// In bytes.
    let size: Int64

    /// `size` is what ``Result/storedSize`` says, where somebody asked before.
    init(_ outcome: Outcome, size: Int64? = nil) {
        self.outcome = outcome
        self.size = size ?? outcome.storedSize
    }
}

extension Outcome {
    /// Bytes of its JSON. Looks at every value.
    package var storedSize: Int64 { Int64(json.size) }
}
