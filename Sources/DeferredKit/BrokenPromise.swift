import Synchronization

/// A promise dropped unresolved.
///
/// Its consumers wait forever, most likely because of a bug. It is reported once, when the last copy of the promise is
/// released, unless it was bound to another Deferred or cancelled before.
public struct BrokenPromise: Error, Sendable, CustomStringConvertible {
    /// The module and file in which the promise was made.
    public let file: String
    /// The line on which the promise was made.
    public let line: UInt

    /// Where the promise was made, as a sentence.
    public var description: String { "The promise made at \(file):\(line) was dropped unresolved." }

    fileprivate static let handler = ReportHandler<BrokenPromise>()
    private static let isWatched = Atomic(false)

    /// Sets the handler for broken promises created from now on.
    ///
    /// - Parameter handler: Runs on the thread that dropped the promise, which may be any. Nil, the initial value,
    ///   ignores broken promises, and then promises have no extra cost.
    public static func setHandler(_ handler: (@Sendable (BrokenPromise) -> Void)?) {
        self.handler.set(handler)
        isWatched.store(handler != nil, ordering: .relaxed)
    }

    /// Reports the promise when its last copy is released, if a handler is set.
    @usableFromInline
    static func watch(_ core: DeferredCore, _ file: StaticString, _ line: UInt) -> PromiseWatch? {
        isWatched.load(ordering: .relaxed) ? PromiseWatch(core, file, line) : nil
    }
}

/// The state shared by the copies of a promise.
@usableFromInline
final class PromiseWatch: Sendable {
    private let core: DeferredCore
    private let file: StaticString
    private let line: UInt

    init(_ core: DeferredCore, _ file: StaticString, _ line: UInt) {
        self.core = core
        self.file = file
        self.line = line
    }

    deinit {
        if core.marks & (Mark.resolved | Mark.committed | Mark.cancelled) == 0 {
            BrokenPromise.handler.report(BrokenPromise(file: "\(file)", line: line))
        }
    }
}
