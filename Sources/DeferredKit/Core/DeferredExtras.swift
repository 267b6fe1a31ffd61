/// What only some Deferreds need. All of it but the latest progress goes at resolution.
@usableFromInline
final class DeferredExtras {
    @usableFromInline var onCancel: (@Sendable (DeferredCore) -> Void)?
    var latest: ProgressUpdate?
    var rounds: [ProgressRound] = []
    @usableFromInline var gathering: Gathering?

    @usableFromInline init() {}

    /// What stays after resolution, for lists.
    var remains: DeferredExtras? {
        guard let latest else { return nil }
        let remains = DeferredExtras()
        remains.latest = latest
        return remains
    }
}
