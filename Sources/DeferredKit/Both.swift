/// Waits for the values of several Deferreds of different types.
///
/// The progress is the sum of the members'. Cancelling the result withdraws from all members. It resolves on the thread
/// that delivers the deciding member. Inside an extension of ``Deferred``, write `DeferredKit.both`, because the method
/// of that name hides this function.
///
/// - Returns: The values. The first failure fails the result and withdraws from the remaining members.
public func both<each S: Sendable, F: Error>(_ deferreds: repeat Deferred<each S, F>) -> Deferred<(repeat each S), F> {
    typealias Values = Deferred<(repeat each S), F>
    var members: [DeferredCore] = []
    repeat members.append(each deferreds)
    let target = Values(pending: 0)
    let finish: @Sendable (Values, [DeferredCore], Trampoline.Reference?) -> Void = { target, members, trampoline in
        var position = 0
        func next<Value: Sendable>(_ type: Value.Type) -> Value {
            defer { position += 1 }
            guard case .success(let value) = Deferred<Value, F>.result(of: members[position]) else {
                preconditionFailure("all have succeeded")
            }
            return value
        }
        target.settle(.success((repeat next((each S).self))), trampoline)
    }
    guard !members.isEmpty else {
        finish(target, [], nil)
        return target
    }
    Gathering.join(members, target) { gathering, source, target, index, trampoline in
        if let failure = source.failure {
            target.fail(with: failure, unless: Mark.resolved, trampoline)
            gathering.dismiss(trampoline)
        } else if let members = gathering.count(index, source, target) {
            finish(unsafeDowncast(target, to: Values.self), members, trampoline)
        }
    }
    return target
}
