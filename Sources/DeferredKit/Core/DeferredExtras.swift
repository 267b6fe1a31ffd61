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

    /// Returns the fields to release at resolution, so that the caller releases them after unlocking.
    func strip() -> ((@Sendable (DeferredCore) -> Void)?, [ProgressRound], Gathering?) {
        defer { (onCancel, rounds, gathering) = (nil, [], nil) }
        return (onCancel, rounds, gathering)
    }
}
