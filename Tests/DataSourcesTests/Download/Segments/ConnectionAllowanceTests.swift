import Synchronization
import Testing

@testable import DataSources

/// How many connections a run may have.
@Suite struct ConnectionAllowanceTests {
    private final class Count: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock(\.self) }
        func add() { count.withLock { $0 += 1 } }
    }

    @Test func unusedConnection_isGivenBackAtOnce() {
        let given = Count()
        let allowance = ConnectionAllowance(3) { given.add() }
        #expect(allowance.open(2) == 2)
        allowance.reclaim()
        #expect(given.value == 1)
        #expect(allowance.count == 2)
        #expect(!allowance.mustClose())
    }

    @Test func usedConnection_isGivenBack_onceItIsClosed() {
        let given = Count()
        let allowance = ConnectionAllowance(4) { given.add() }
        #expect(allowance.open(16) == 4)
        #expect(!allowance.mustClose())
        allowance.reclaim()
        #expect(allowance.mustClose())
        // One is enough.
        #expect(!allowance.mustClose())
        #expect(given.value == 0)
        allowance.close()
        #expect(given.value == 1)
        // Another one ends by itself; it is given back when it is asked for.
        allowance.close()
        #expect(given.value == 1)
        allowance.reclaim()
        #expect(given.value == 2)
    }

    @Test func lastConnection_isKept() {
        let given = Count()
        let allowance = ConnectionAllowance(2) { given.add() }
        #expect(allowance.open(2) == 2)
        for _ in 0..<3 { allowance.reclaim() }
        #expect(allowance.mustClose())
        #expect(!allowance.mustClose())
        allowance.close()
        #expect(given.value == 1)
        #expect(allowance.count == 1)
        allowance.close()
        #expect(given.value == 1)
    }
}
