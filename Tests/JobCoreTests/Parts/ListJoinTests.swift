import JobModel
import Testing

@testable import JobCore

@Suite struct ListJoinTests {
    /// Every order of `elements`.
    private static func orders(_ elements: [Int]) -> [[Int]] {
        if elements.isEmpty { return [[]] }
        return elements.flatMap { first in orders(elements.filter { $0 != first }).map { [first] + $0 } }
    }

    private static let ends: [JobState] = [.succeeded, .failed, .cancelled]

    /// All modes, with all ends of three children, in all orders.
    @Test(arguments: ListMode.allCases)
    func list_isDecided_asItsModeSays(_ mode: ListMode) {
        for code in 0..<27 {
            let states = [Self.ends[code % 3], Self.ends[code / 3 % 3], Self.ends[code / 9]]
            for order in Self.orders([0, 1, 2]) {
                var join = ListJoin(mode: mode, ids: [10, 11, 12])
                var decided: ListJoin.Decision?
                for (place, index) in order.enumerated() {
                    let isLast = place == 2
                    let decides =
                        switch mode {
                        case .settled: false
                        case .all: states[index] != .succeeded
                        case .first: states[index] == .succeeded
                        }
                    let isNews = decided == nil && decides
                    if isNews { decided = mode == .all ? .failed(index) : .succeeded(index) }
                    let action = join.childEnded(index, states[index])
                    #expect(action == (isLast ? .end : isNews ? .cancelRest : .none), "\(states) in order \(order)")
                    #expect(join.decision == decided)
                    #expect(join.isOver == isLast && join.endedCount == place + 1)
                    #expect(join.open == order.dropFirst(place + 1).sorted().map { JobID(10 + $0) })
                }
            }
        }
    }

    @Test func child_endsOnce() {
        var join = ListJoin(mode: .settled, ids: [1, 2])
        for (index, state) in [(0, .succeeded), (0, .failed), (2, .failed), (-1, .failed)] as [(Int, JobState)] {
            let action = join.childEnded(index, state)
            #expect(action == .none)
        }
        #expect(join.endedCount == 1 && !join.isOver && join.open == [2])
        let last = join.childEnded(1, .cancelled)
        #expect(last == .end)
        let again = join.childEnded(1, .cancelled)
        #expect(again == .none, "it is over and stays so")
        #expect(join.endedCount == 2)
    }

    @Test func emptyList_isOver() {
        for mode in ListMode.allCases {
            let join = ListJoin(mode: mode, ids: [])
            #expect(join.isOver && join.open.isEmpty && join.decision == nil)
        }
    }
}
