import JobModel
import TestSupport
import Testing

@testable import JobCore

/// The gates of lists with a concurrency of their own.
@Suite struct ListCoordinatorTests {
    /// Children as the store has them, of which so many may run.
    private struct Model {
        var lists = ListCoordinator()
        let count: Int
        let concurrency: Int
        /// Those that the store gives as queued.
        var queued: Set<Int>
        /// Let in, and stored as queued all the same until their first link ends.
        var admitted: [Int] = []
        var times: [Int: Int] = [:]

        init(count: Int, concurrency: Int, mode: ListMode = .settled) {
            self.count = count
            self.concurrency = concurrency
            queued = Set(0..<count)
            lists.open(
                ListJoin(mode: mode, ids: (0..<count).map { JobID(100 + $0) }), link: 0, concurrency: concurrency,
                active: [], of: 1)
        }

        func id(_ index: Int) -> JobID { JobID(100 + index) }

        func row(_ index: Int) -> ReadyJob {
            ReadyJob(
                position: ReadyPosition(priority: 0, id: id(index)), host: nil,
                parent: Job.Parent(job: 1, link: 0, index: index, depth: 1), job: nil)
        }

        func rows(_ request: ListCoordinator.Request) -> [ReadyJob] {
            queued.sorted().filter { $0 >= request.from }.prefix(request.limit).map(row)
        }

        mutating func receive(_ request: ListCoordinator.Request, _ rows: [ReadyJob]) {
            let (admitted, queued) = (self.admitted, queued)
            let given = lists.received(request, rows) { row in
                // Rows are old: the core leaves out what is not queued any more.
                let index = Int(row.position.id) - 100
                return admitted.contains(index) || !queued.contains(index) ? nil : row
            }
            for row in given {
                let index = Int(row.position.id) - 100
                times[index, default: 0] += 1
                self.admitted.append(index)
            }
            #expect(self.admitted.count <= concurrency)
        }

        /// Reads until nothing more may be let in.
        mutating func fill() {
            var count = 0
            while let request = lists.request(of: 1) {
                count += 1
                guard count < 10_000 else {
                    Issue.record("It reads on and on.")
                    return
                }
                receive(request, rows(request))
            }
        }

        mutating func end(_ index: Int, _ state: JobState = .succeeded) -> ListJoin.Action {
            admitted.removeAll { $0 == index }
            queued.remove(index)
            return lists.childEnded(id(index), at: index, state, bytes: 0, of: 1)
        }
    }

    @Test func children_areLetInOnce_byIndex_noMoreThanTheConcurrency() {
        var model = Model(count: 100, concurrency: 7)
        model.fill()
        #expect(model.admitted == Array(0..<7))
        var actions: Set<ListJoin.Action> = []
        while let first = model.admitted.first {
            actions.insert(model.end(first))
            model.fill()
        }
        #expect(model.times == Dictionary(uniqueKeysWithValues: (0..<100).map { ($0, 1) }))
        #expect(actions == [.none, .end] && model.lists[1]?.join.isOver == true)
    }

    @Test func children_areLetInAFewAtATime_whereManyMayRun() {
        var model = Model(count: 100, concurrency: 50)
        let request = model.lists.request(of: 1)
        #expect(request?.from == 0 && request?.limit == 16)
        let further = model.lists.request(of: 1)
        #expect(further == nil, "one read at a time")
        request.map { model.receive($0, model.rows($0)) }
        model.fill()
        #expect(model.admitted.count == 50)
    }

    @Test func pausedChild_letsASiblingIn_andComesBack() {
        var model = Model(count: 4, concurrency: 1)
        model.fill()
        #expect(model.admitted == [0])
        // It waits for its retry.
        model.lists.childPaused(100, of: 1)
        model.admitted = []
        model.queued.remove(0)
        model.fill()
        #expect(model.admitted == [1])
        // It is ready again, and the first when the next may start.
        model.queued.insert(0)
        model.lists.childReturned(100, at: 0, of: 1)
        model.fill()
        #expect(model.admitted == [1], "there is no room")
        _ = model.end(1)
        model.fill()
        #expect(model.admitted == [0])
        #expect(!model.lists.mayStart(101, of: 1) && model.lists.mayStart(100, of: 1))
    }

    @Test func child_comesBack_thatWasTakenForOneThatRuns() {
        // It was in memory when the list began to wait, as its crash was being stored.
        var model = Model(count: 3, concurrency: 1)
        model.lists.open(
            ListJoin(mode: .settled, ids: [100, 101, 102]), link: 0, concurrency: 1, active: [100], of: 1)
        model.fill()
        #expect(model.admitted.isEmpty)
        model.lists.childReturned(100, at: 0, of: 1)
        model.fill()
        #expect(model.admitted == [0])
    }

    @Test func child_isLetIn_whereItCameBackDuringARead() {
        var model = Model(count: 3, concurrency: 2)
        model.queued = [1]
        let request = model.lists.request(of: 1)
        let rows = request.map(model.rows) ?? []
        // It came back after the store looked.
        model.queued.insert(0)
        model.lists.childReturned(100, at: 0, of: 1)
        request.map { model.receive($0, rows) }
        #expect(model.admitted == [1])
        model.fill()
        #expect(model.admitted == [1, 0])
    }

    @Test func read_thatFailed_isDoneAgain() {
        var model = Model(count: 2, concurrency: 1)
        let request = model.lists.request(of: 1)
        let further = model.lists.request(of: 1)
        #expect(further == nil)
        request.map { model.lists.readFailed($0) }
        model.fill()
        #expect(model.admitted == [0])
    }

    @Test func read_isIgnored_whereItsListEndedAndBeganAgain() throws {
        var model = Model(count: 5, concurrency: 1)
        let first = model.lists.request(of: 1)
        let old = try #require(first)
        let rows = model.rows(old)
        model.lists.close(1)
        let ids = (0..<5).map { JobID(200 + $0) }
        model.lists.open(
            ListJoin(mode: .settled, ids: ids), link: 0, concurrency: 1, active: [], of: 1)
        let second = model.lists.request(of: 1)
        let request = try #require(second)
        let late = model.lists.received(old, rows) { $0 }
        #expect(late.isEmpty)
        model.lists.readFailed(old)
        let third = model.lists.request(of: 1)
        #expect(third == nil, "the read of the new one is under way")
        let row = ReadyJob(
            position: ReadyPosition(priority: 0, id: 200), host: nil,
            parent: Job.Parent(job: 1, link: 0, index: 0, depth: 1), job: nil)
        let given = model.lists.received(request, [row]) { $0 }
        #expect(given.map(\.position.id) == [200])
    }

    @Test func noneIsLetIn_onceTheListIsDecided() {
        var model = Model(count: 5, concurrency: 1, mode: .all)
        model.fill()
        let action = model.end(0, .failed)
        #expect(action == .cancelRest)
        model.fill()
        #expect(model.admitted.isEmpty && !model.lists.mayStart(101, of: 1))
    }

    @Test func children_ofAListWithoutAGate_mayStart() {
        var lists = ListCoordinator()
        lists.open(
            ListJoin(mode: .all, ids: [5, 6]), link: 0, concurrency: 2, active: [], of: 1)
        lists.open(
            ListJoin(mode: .all, ids: [7, 8, 9]), link: 0, concurrency: nil, active: [], of: 2)
        #expect(lists.gated.isEmpty && lists.count == 2)
        #expect(lists.mayStart(5, of: 1) && lists.mayStart(5, of: 3))
        for id in [1, 2, 3] as [JobID] {
            let request = lists.request(of: id)
            #expect(request == nil)
        }
        let decides = lists.childEnded(5, at: 0, .failed, bytes: 0, of: 1)
        #expect(decides == .cancelRest && !lists.mayStart(6, of: 1))
        let unknown = lists.childEnded(5, at: 0, .failed, bytes: 0, of: 9)
        #expect(unknown == .none)
    }

    @Test func bytes_ofEndedChildren_areSummedUp() {
        var lists = ListCoordinator()
        lists.open(
            ListJoin(mode: .all, ids: [5, 6]), link: 0, concurrency: nil, active: [], of: 1)
        for (index, bytes) in [(0, Int64.max), (1, 7)] {
            _ = lists.childEnded(JobID(5 + index), at: index, .succeeded, bytes: bytes, of: 1)
        }
        #expect(lists[1]?.endedBytes == .max)
    }

    /// Children end, pause, come back and are read late, in any order.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func children_areAllLetIn_whateverHappens(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var model = Model(count: 60, concurrency: generator.pick([1, 2, 5, 20]))
        var paused: [Int] = []
        var read: (request: ListCoordinator.Request, rows: [ReadyJob])?
        for step in 0..<4000 {
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: if read == nil, let request = model.lists.request(of: 1) { read = (request, model.rows(request)) }
            case 1:
                if let (request, rows) = read {
                    read = nil
                    if generator.chance(0.1) { model.lists.readFailed(request) } else { model.receive(request, rows) }
                }
            case 2, 3:
                guard !model.admitted.isEmpty else { break }
                let index = generator.pick(model.admitted)
                if step < 3000, generator.chance(0.5) {
                    model.admitted.removeAll { $0 == index }
                    model.queued.remove(index)
                    paused.append(index)
                    model.lists.childPaused(model.id(index), of: 1)
                } else {
                    _ = model.end(index)
                }
            default:
                guard !paused.isEmpty else { break }
                let index = paused.removeFirst()
                model.queued.insert(index)
                model.lists.childReturned(model.id(index), at: index, of: 1)
            }
        }
        #expect(model.lists[1]?.join.isOver == true, "left: \(model.lists[1]?.join.open.count ?? 0)")
    }
}
