/// Rarely needed fields of a Deferred. All but the latest progress are released at resolution.
@usableFromInline
final class DeferredExtras {
    @usableFromInline var onCancel: (@Sendable (DeferredCore) -> Void)?
    var latest: ProgressUpdate?
    /// The number of different values so far, which is the number of the latest.
    var count: UInt64 = 0
    /// The values being delivered, in order.
    var rounds: [ProgressRound] = []
    @usableFromInline var gathering: Gathering?

    @usableFromInline init() {}

    /// The fields released at resolution.
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
