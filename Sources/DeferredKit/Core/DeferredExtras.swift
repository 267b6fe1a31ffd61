/// What only some Deferreds need. All of it but the latest progress is released at resolution.
@usableFromInline
final class DeferredExtras {
    @usableFromInline var onCancel: (@Sendable (DeferredCore) -> Void)?
    var latest: ProgressUpdate?
    /// How many different values there were so far; the number of the latest.
    var count: UInt64 = 0
    /// The values that are being delivered, in this order.
    var rounds: [ProgressRound] = []
    @usableFromInline var gathering: Gathering?

    @usableFromInline init() {}

    /// What is released at resolution.
    struct Parting {
        let onCancel: (@Sendable (DeferredCore) -> Void)?
        let rounds: [ProgressRound]
        let gathering: Gathering?
    }

    func strip() -> Parting {
        let parting = Parting(onCancel: onCancel, rounds: rounds, gathering: gathering)
        onCancel = nil
        rounds = []
        gathering = nil
        return parting
    }
}
