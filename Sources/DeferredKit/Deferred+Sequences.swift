extension Deferred {
    /// The outcomes of several, as they come.
    ///
    /// It begins to wait at once and is for one loop. Leaving the loop, cancelling its task, or dropping the sequence
    /// withdraws from the members that are still out. At most one outcome for each member waits to be read.
    ///
    /// - Parameter deferreds: The members.
    /// - Returns: Each outcome with the position of its member, in the order in which they resolve. It ends after the
    ///   last; a member that never will resolve is left out once it is released.
    public static func outcomes(
        of deferreds: some Collection<Deferred>
    ) -> some AsyncSequence<(index: Int, outcome: Outcome), Never> & Sendable {
        let (stream, continuation) = AsyncStream.makeStream(of: (index: Int, outcome: Outcome).self)
        let end = StreamEnd { continuation.finish() }
        let links = deferreds.map { $0.link(hopping: false, to: Deferred.self, Deferred.passOn) }
        for (index, link) in links.enumerated() {
            link.upon { outcome in
                withExtendedLifetime(end) { _ = continuation.yield((index: index, outcome: outcome)) }
            }
        }
        continuation.onTermination = { _ in
            for link in links { link.cancel() }
        }
        return stream
    }

    /// The progress, as it is reported.
    ///
    /// It begins with the latest value, if there is one, and ends when the outcome is there or never will be. Reading
    /// it is no interest in the work. It is for one loop; a slow one misses values: 16 wait, and the oldest of them is
    /// dropped first.
    public var progress: some AsyncSequence<ProgressUpdate, Never> & Sendable {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ProgressUpdate.self,
            bufferingPolicy: .bufferingNewest(DeferredCore.progressBacklog)
        )
        let end = StreamEnd { continuation.finish() }
        let observation = onProgress { update in withExtendedLifetime(end) { _ = continuation.yield(update) } }
        continuation.onTermination = { _ in observation.cancel() }
        return stream
    }
}

/// Ends a stream when the last closure that could add to it is released.
private final class StreamEnd: Sendable {
    private let finish: @Sendable () -> Void

    init(_ finish: @escaping @Sendable () -> Void) {
        self.finish = finish
    }

    deinit { finish() }
}
