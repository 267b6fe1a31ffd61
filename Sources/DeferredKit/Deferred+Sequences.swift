extension Deferred {
    /// Returns the outcomes of several Deferreds in the order in which they resolve.
    ///
    /// It starts waiting at once and supports one loop. Leaving the loop, cancelling its task, or dropping the sequence
    /// withdraws from the unresolved members. The sequence buffers at most one outcome per member.
    ///
    /// - Returns: Each outcome with the index of its member, in the order in which they resolve. The sequence ends
    ///   after the last one; it skips a member that is released unresolved.
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

    /// The progress reports.
    ///
    /// The sequence begins with the latest value, if any, and ends when the Deferred resolves or can no longer resolve.
    /// Reading it is not interest in the work. It supports one loop; a slow loop misses values: it buffers 16 and drops
    /// the oldest first.
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

/// Ends a stream when the last closure that can add to it is released.
private final class StreamEnd: Sendable {
    private let finish: @Sendable () -> Void

    init(_ finish: @escaping @Sendable () -> Void) {
        self.finish = finish
    }

    deinit { finish() }
}
