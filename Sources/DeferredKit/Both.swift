/// Waits for the values of several Deferreds of different types.
///
/// The progress is the sum of theirs. Cancelling it withdraws from all of them. It resolves on the thread that delivers
/// the member which decides. Inside an extension of ``Deferred``
/// write `DeferredKit.both`, as the method of that name hides it.
///
/// - Parameter deferreds: The members.
/// - Returns: The values. The first failure fails it and withdraws from the rest.
public func both<each S: Sendable, F: Error>(
    _ deferreds: repeat Deferred<each S, F>
) -> Deferred<(repeat each S), F> {
    typealias Values = Deferred<(repeat each S), F>
    var members: [DeferredCore] = []
    repeat members.append(each deferreds)
    let target = Values(pending: 0)
    // Keeps each member once it has resolved, when it no longer has waiters.
    let sources = Slots<DeferredCore>(count: members.count)
    let finish: @Sendable (Values, Trampoline.Reference?) -> Void = { target, trampoline in
        var position = 0
        func next<Value: Sendable>(_ type: Value.Type) -> Value {
            defer { position += 1 }
            let member = unsafeDowncast(sources[position].unsafelyUnwrapped, to: Deferred<Value, F>.self)
            guard case .success(let value)? = member.storage else { preconditionFailure("all have succeeded") }
            return value
        }
        target.settle(.success((repeat next((each S).self))), trampoline)
    }
    guard !members.isEmpty else {
        finish(target, nil)
        return target
    }
    Gathering.join(members, target) { gathering, source, target, index, trampoline in
        if let failure = source.failure {
            target.fail(with: failure, unless: Mark.resolved, trampoline)
            gathering.dismiss(.withdrawing, trampoline)
        } else {
            sources[index] = source
            if gathering.count(index, source, target) { finish(unsafeDowncast(target, to: Values.self), trampoline) }
        }
    }
    return target
}
