import JobModel
import Testing

@testable import JobCore

@Suite struct HostLimitsTests {
    private let key = ConcurrencyKey.host("a")

    @Test func host_isOpen_belowItsLimit() {
        var limits = HostLimits(perHost: 2, openLists: 4)
        #expect(limits.isOpen(key, for: 1) && limits.isOpen(.none, for: 1))
        let first = limits.acquire(key, for: 1)
        #expect(limits.isOpen(key, for: 1))
        _ = limits.acquire(key, for: 2)
        #expect(!limits.isOpen(key, for: 1) && limits.isOpen(.host("b"), for: 1))
        #expect(limits.count(key, of: 1) == 1 && limits.count(key, of: 3) == 0)
        first.map { limits.release($0) }
        #expect(limits.isOpen(key, for: 1) && limits.count(key, of: 1) == 0)
        limits.perHost = 1
        #expect(!limits.isOpen(key, for: 1))
    }

    @Test func nothingIsCounted_withoutAKey() {
        var limits = HostLimits(perHost: 1, openLists: 1)
        let permit = limits.acquire(.none, for: 1)
        #expect(permit == nil && limits.totals.isEmpty)
    }

    @Test func host_isClosed_whileItIsBackedOff() {
        var limits = HostLimits(perHost: 2, openLists: 4)
        for _ in 0..<2 {
            let isLeftAlone = limits.backOff(key, for: 1)
            #expect(isLeftAlone)
        }
        #expect(!limits.isOpen(key, for: 1) && limits.isOpen(.host("b"), for: 1))
        limits.acquire(key, for: 1).map { limits.release($0) }
        #expect(!limits.isOpen(key, for: 1))
        limits.reopen(key)
        limits.reopen(.host("b"))
        #expect(limits.isOpen(key, for: 1) && limits.isOpen(.host("b"), for: 1))
    }

    @Test func host_isAskedAllTheSame_whereTooManyAreLeftAloneForItsOwner() {
        var limits = HostLimits(perHost: 2, openLists: 4)
        for number in 0..<1000 { _ = limits.backOff(.host("h\(number)"), for: 1) }
        let further = limits.backOff(.host("further"), for: 1)
        #expect(!further && limits.isOpen(.host("further"), for: 1))
        let again = limits.backOff(.host("h7"), for: 1)
        #expect(again, "that one is left alone already")
        let others = limits.backOff(.host("further"), for: 2)
        #expect(others && !limits.isOpen(.host("further"), for: 1), "one owner's many are no matter of another's")
        limits.reopen(.host("h7"))
        let later = limits.backOff(.host("later"), for: 1)
        #expect(later)
    }

    @Test func lists_areOpenForAnOwner_upToItsPart() {
        var limits = HostLimits(perHost: 2, openLists: 4)
        for _ in 0..<3 { _ = limits.acquire(.lists, for: 1, bytes: 10) }
        #expect(!limits.isOpen(.lists, for: 1) && limits.isOpen(.lists, for: 2))
        let last = limits.acquire(.lists, for: 2)
        #expect(!limits.isOpen(.lists, for: 2) && !limits.isOpen(.lists, for: 3))
        last.map { limits.release($0) }
        #expect(limits.isOpen(.lists, for: 3))
    }

    @Test func lists_areOpenForAnOwner_whileTheirSpecsAreSmall() {
        var limits = HostLimits(perHost: 2, openLists: 256)
        let permit = limits.acquire(.lists, for: 1, bytes: 8 << 20)
        #expect(!limits.isOpen(.lists, for: 1) && limits.isOpen(.lists, for: 2))
        permit.map { limits.release($0) }
        #expect(limits.isOpen(.lists, for: 1) && limits.totals.isEmpty)
    }
}
