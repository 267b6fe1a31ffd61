extension Deferred {
    /// Waits for all values.
    ///
    /// The list's progress is the sum of its members'. Cancelling the list withdraws from all members. The list
    /// resolves on the thread that delivers the deciding member.
    ///
    /// - Returns: The values in input order, or `[]` at once without members. The first failure fails the list and
    ///   withdraws from the remaining members.
    @inlinable
    public static func all(_ deferreds: some Collection<Deferred>) -> Deferred<[Success], Failure> {
        guard !deferreds.isEmpty else { return .succeeded([]) }
        let target = Deferred<[Success], Failure>(pending: 0)
        Gathering.join(Array(deferreds), target) { gathering, source, target, index, trampoline in
            let typed = unsafeDowncast(target, to: Deferred<[Success], Failure>.self)
            if case .failure(let error) = Deferred.result(of: source) {
                typed.settle(.failure(error), trampoline)
                gathering.dismiss(trampoline)
            } else if let members = gathering.count(index, source, target) {
                let values = Result { () throws(Failure) in
                    try members.map { (member) throws(Failure) in try Deferred.result(of: member).get() }
                }
                typed.settle(values, trampoline)
            }
        }
        return target
    }

    /// Waits for all outcomes, with the progress and the thread of ``all(_:)``.
    ///
    /// Cancelling the list withdraws from all members; because it cannot fail, it still waits for their outcomes.
    ///
    /// - Returns: Every outcome in input order, or `[]` at once without members.
    @inlinable
    public static func settled(_ deferreds: some Collection<Deferred>) -> Deferred<[Outcome], Never> {
        guard !deferreds.isEmpty else { return .succeeded([]) }
        let target = Deferred<[Outcome], Never>(pending: 0)
        Gathering.join(Array(deferreds), target) { gathering, source, target, index, trampoline in
            guard let members = gathering.count(index, source, target) else { return }
            unsafeDowncast(target, to: Deferred<[Outcome], Never>.self)
                .settle(.success(members.map(Deferred.result(of:))), trampoline)
        }
        return target
    }

    /// Waits for the first success, with the progress, cancellation and thread of ``all(_:)``.
    ///
    /// - Returns: The first value and the index of its member; the list then withdraws from the remaining members. If
    ///   all fail, their failures in input order; without members, the list fails at once with no failures.
    @inlinable
    public static func firstSuccess(
        _ deferreds: some Collection<Deferred>
    ) -> Deferred<(index: Int, value: Success), FailureGroup<Failure>> {
        typealias First = Deferred<(index: Int, value: Success), FailureGroup<Failure>>
        guard !deferreds.isEmpty else { return .failed(FailureGroup(failures: [])) }
        let target = First(pending: 0)
        Gathering.join(Array(deferreds), target) { gathering, source, target, index, trampoline in
            let typed = unsafeDowncast(target, to: First.self)
            if case .success(let value) = Deferred.result(of: source) {
                typed.settle(.success((index: index, value: value)), trampoline)
                gathering.dismiss(trampoline)
            } else if let members = gathering.count(index, source, target) {
                let failures = members.compactMap {
                    if case .failure(let error) = Deferred.result(of: $0) { error } else { nil }
                }
                typed.settle(.failure(FailureGroup(failures: failures)), trampoline)
            }
        }
        return target
    }

    /// Waits for the first outcome, a value or a failure, with the progress, cancellation and thread of ``all(_:)``.
    ///
    /// - Returns: The first outcome and the index of its member; the list then withdraws from the remaining members.
    ///   Without members, it never resolves.
    @inlinable
    public static func first(
        _ deferreds: some Collection<Deferred>
    ) -> Deferred<(index: Int, outcome: Outcome), Never> {
        typealias First = Deferred<(index: Int, outcome: Outcome), Never>
        guard !deferreds.isEmpty else { return .never }
        let target = First(pending: 0)
        Gathering.join(Array(deferreds), target) { gathering, source, target, index, trampoline in
            unsafeDowncast(target, to: First.self)
                .settle(.success((index: index, outcome: Deferred.result(of: source))), trampoline)
            gathering.dismiss(trampoline)
        }
        return target
    }

    /// Waits for the first member to resolve, with the progress, cancellation and thread of ``all(_:)``, and does not
    /// affect the others.
    ///
    /// - Returns: The member that resolved first. Without members, it never resolves.
    @inlinable
    public static func firstResolved(_ deferreds: some Collection<Deferred>) -> Deferred<Deferred, Never> {
        guard !deferreds.isEmpty else { return .never }
        let target = Deferred<Deferred, Never>(pending: 0)
        Gathering.join(Array(deferreds), target) { gathering, source, target, _, trampoline in
            unsafeDowncast(target, to: Deferred<Deferred, Never>.self)
                .settle(.success(unsafeDowncast(source, to: Deferred.self)), trampoline)
            gathering.dismiss(withdrawing: false, trampoline)
        }
        return target
    }
}
