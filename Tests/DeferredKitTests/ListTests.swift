import DeferredKit
import Testing

/// Lists in every mode: empty, resolved before, one failing, all failing, cancelled.
@Suite struct ListTests {
    private func promises(_ count: Int, _ journal: Journal<Int>? = nil) -> [Promise<Int, any Error>] {
        (0..<count).map { index in Promise { _ in journal?.note(index) } }
    }

    // MARK: Empty

    @Test func emptyLists_answerAtOnce_exceptTheFirstResolved() {
        let none: [Deferred<Int, Oops>] = []
        #expect(Deferred.all(none).outcome == .success([]))
        #expect(Deferred.settled(none).value?.isEmpty == true)
        #expect((Deferred.firstSuccess(none).error as? FailureGroup<Oops>)?.failures == [])
        #expect(Deferred.firstResolved(none).outcome == nil)
    }

    // MARK: Resolved before

    @Test func lists_answerAtOnce_whenTheirMembersAreResolved() {
        let members = (0..<3).map { Deferred<Int, Oops>.succeeded($0) }
        #expect(Deferred.all(members).outcome == .success([0, 1, 2]))
        #expect(Deferred.settled(members).value == [.success(0), .success(1), .success(2)])
        #expect(Deferred.firstSuccess(members).value?.index == 0)
        #expect(Deferred.firstResolved(members).value === members[0])
    }

    @Test func lists_takeTheOneThatIsResolved_amongOthers() {
        let open = promises(2)
        let resolved = Deferred<Int, any Error>.succeeded(5)
        let members = [open[0].deferred, resolved, open[1].deferred]
        #expect(Deferred.firstResolved(members).value === resolved)
        let first = Deferred.firstSuccess(members)
        #expect(first.value?.index == 1)
        #expect(open.allSatisfy { $0.isCancelled })
    }

    @Test func all_failsAtOnceAndCancelsTheRest_whenOneHasFailedBefore() {
        let journal = Journal<Int>()
        let open = promises(2, journal)
        let list = Deferred.all([open[0].deferred, .failed(Oops.one), open[1].deferred])
        #expect(list.error as? Oops == .one)
        #expect(journal.entries == [0, 1])
    }

    @Test func list_acceptsTheSameDeferredTwice() {
        let promise = Promise<Int, any Error>()
        let list = Deferred.all([promise.deferred, promise.deferred])
        let pair = both(promise.deferred, promise.deferred)
        promise.succeed(3)
        #expect(list.value == [3, 3])
        #expect(pair.value?.0 == 3)
    }

    @Test func lists_takeAnyCollection() {
        let members = [Deferred<Int, Oops>.succeeded(1)]
        #expect(Deferred.all(members[...]).outcome == .success([1]))
        #expect(Deferred.all(members.lazy.map { $0.map { $0 + 1 } }).outcome == .success([2]))
        #expect(Deferred.settled(CollectionOfOne(members[0])).value?.count == 1)
    }

    // MARK: Failing

    @Test func all_failsOnce_whenSeveralFail() {
        let promises = promises(3)
        let list = Deferred.all(promises.map(\.deferred))
        promises[1].fail(Oops.one)
        promises[0].fail(Oops.two)
        #expect(list.error as? Oops == .one)
    }

    @Test func all_withdrawsFromTheRest_butNotFromWhatOthersWant() {
        let journal = Journal<Int>()
        let promises = promises(3, journal)
        let other = promises[2].deferred.map { $0 }
        let list = Deferred.all(promises.map(\.deferred))
        promises[0].fail(Oops.one)
        #expect(list.error as? Oops == .one)
        #expect(journal.entries == [1])
        promises[2].succeed(2)
        #expect(other.value == 2)
    }

    @Test func settled_waitsForAll_whenSomeFail() {
        let promises = promises(2)
        let list = Deferred.settled(promises.map(\.deferred))
        promises[0].fail(Oops.one)
        #expect(list.outcome == nil)
        #expect(!promises[1].isCancelled)
        promises[1].succeed(1)
        #expect(list.value?.count == 2)
    }

    @Test func firstSuccess_failsWithAllFailures_inInputOrder() {
        let promises = (0..<3).map { _ in Promise<Int, Oops>() }
        let list = Deferred.firstSuccess(promises.map(\.deferred))
        promises[2].fail(.cancelled)
        promises[0].fail(.one)
        #expect(list.outcome == nil)
        promises[1].fail(.two)
        #expect((list.error as? FailureGroup<Oops>)?.failures == [.one, .two, .cancelled])
    }

    @Test func firstSuccess_cancelsTheRest_whenOneSucceeds() {
        let journal = Journal<Int>()
        let promises = promises(4, journal)
        let list = Deferred.firstSuccess(promises.map(\.deferred))
        promises[3].fail(Oops.one)
        promises[1].succeed(1)
        #expect(list.value?.index == 1)
        #expect(journal.entries == [0, 2])
    }

    @Test func firstResolved_takesAFailure_andWithdrawsFromNobody() {
        let journal = Journal<Int>()
        let promises = promises(3, journal)
        let list = Deferred.firstResolved(promises.map(\.deferred))
        promises[1].fail(Oops.one)
        #expect(list.value === promises[1].deferred)
        #expect(journal.entries.isEmpty)
        promises[0].succeed(1)
        #expect(promises[0].deferred.value == 1)
    }

    @Test func first_takesTheFirstOutcome_andWithdrawsFromTheRest() {
        let journal = Journal<Int>()
        let promises = promises(3, journal)
        let other = promises[2].deferred.map { $0 }
        let list = Deferred.first(promises.map(\.deferred))
        promises[1].fail(Oops.one)
        #expect(list.value?.index == 1)
        #expect(throws: Oops.one) { try list.value?.outcome.get() }
        #expect(journal.entries == [0])
        promises[2].succeed(2)
        #expect(other.value == 2)
        let none: [Deferred<Int, Oops>] = []
        #expect(!Deferred.first(none).isResolved)
    }

    @Test func pair_failsAndCancelsTheRest_whenOneFails() {
        let journal = Journal<String>()
        let number = Promise<Int, any Error> { _ in journal.note("number") }
        let text = Promise<String, any Error> { _ in journal.note("text") }
        let flag = Promise<Bool, any Error> { _ in journal.note("flag") }
        let triple = both(number.deferred, text.deferred, flag.deferred)
        text.fail(Oops.one)
        #expect(triple.error as? Oops == .one)
        #expect(journal.entries == ["number", "flag"])
    }

    @Test func pair_isTyped_andWorksInsideAnExtension() {
        let pair: Deferred<(Int, String), Oops> = both(.succeeded(1), Deferred<String, Oops>.failed(.two))
        if case .failure(let error)? = pair.outcome { #expect(error == .two) }
        #expect(Deferred<Int, any Error>.succeeded(1).withItself.value?.1 == 1)
    }

    // MARK: Cancelled

    @Test func list_withdrawsFromAllMembers_whenCancelled() {
        let journal = Journal<Int>()
        let promises = promises(3, journal)
        let list = Deferred.all(promises.map(\.deferred))
        list.cancel()
        #expect(journal.entries.sorted() == [0, 1, 2])
        #expect(list.isCancelled)
    }

    @Test func list_failsAtOnce_whenAllMembersAreWantedByOthers() {
        let promises = promises(2)
        let others = promises.map { $0.deferred.map { $0 } }
        let list = Deferred.all(promises.map(\.deferred))
        list.cancel()
        #expect(list.isCancelled)
        #expect(others.allSatisfy { $0.outcome == nil })
        #expect(!promises.contains { $0.isCancelled })
    }

    @Test func settled_waitsForItsMembers_whenCancelled() {
        let promises = promises(2)
        let other = promises[1].deferred.map { $0 }
        let list = Deferred.settled(promises.map(\.deferred))
        list.cancel()
        #expect(promises[0].isCancelled)
        #expect(list.outcome == nil)
        promises[1].succeed(1)
        #expect(list.value?.count == 2)
        #expect(other.value == 1)
    }

    @Test func firstSuccess_failsWithCancellations_whenCancelled() {
        let promises = promises(2)
        let list = Deferred.firstSuccess(promises.map(\.deferred))
        list.cancel()
        let group = list.error as? FailureGroup<any Error>
        #expect(group?.failures.count == 2)
        #expect(group?.failures.allSatisfy { $0 is CancellationError } == true)
    }

    @Test func firstResolved_withdrawsFromAll_whenCancelled() {
        let promises = promises(2)
        let list = Deferred.firstResolved(promises.map(\.deferred))
        list.cancel()
        #expect(promises.allSatisfy { $0.isCancelled })
        #expect(list.value?.isCancelled == true)
    }

    @Test func pair_withdrawsFromItsMembers_whenCancelled() {
        let number = Promise<Int, any Error>()
        let text = Promise<String, any Error>()
        let pair = both(number.deferred, text.deferred).map { $0 }
        pair.cancel()
        #expect(number.isCancelled)
        #expect(text.isCancelled)
        #expect(pair.isCancelled)
    }

    @Test func list_failsAtOnce_whenAMemberWillNeverResolve() {
        let promise = Promise<Int, Oops>()
        let dropped = Promise<Int, Oops>().deferred
        let link = dropped.map { $0 }
        let last = Deferred.all([promise.deferred, link]).erased()
        last.cancel()
        #expect(promise.isCancelled || last.isCancelled)
        let never = Deferred.all([Promise<Int, Oops>().deferred, Promise<Int, Oops>().deferred]).erased()
        never.cancel()
        #expect(never.isCancelled)
    }

    @Test func list_takesTheProducersAnswer_whenItsMembersWaitForTheSame() {
        let journal = Journal<String>()
        let promise = Promise<Int, any Error> {
            journal.note("cancelled")
            $0.succeed(7)
        }
        let pair = both(promise.deferred.map { $0 + 1 }, promise.deferred.map { $0 * 2 }.finally { _ in })
        pair.cancel()
        #expect(journal.entries == ["cancelled"])
        #expect(pair.value?.0 == 8 && pair.value?.1 == 14)
    }

    @Test func list_failsAtOnce_whenOthersWantWhatItsMembersWaitFor() {
        let promise = Promise<Int, any Error> { $0.succeed(7) }
        let other = promise.deferred.map { $0 }
        let pair = both(promise.deferred.map { $0 + 1 }, promise.deferred)
        pair.cancel()
        #expect(pair.isCancelled && !promise.isCancelled)
        promise.succeed(1)
        #expect(other.value == 1)
    }

    @Test func member_isWantedByNobody_afterItsListResolved() {
        let promises = promises(2)
        let list = Deferred.firstResolved(promises.map(\.deferred))
        promises[0].succeed(1)
        let link = promises[1].deferred.map { $0 }
        link.cancel()
        #expect(promises[1].isCancelled)
        #expect(list.value === promises[0].deferred)
    }
}

extension Deferred {
    fileprivate var withItself: Deferred<(Success, Success), Failure> { DeferredKit.both(self, self) }
}
