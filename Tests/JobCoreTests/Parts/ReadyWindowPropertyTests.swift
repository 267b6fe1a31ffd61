import JobModel
import TestSupport
import Testing

@testable import JobCore

/// A window against a model of the store and the core: no job is lost, none is given twice, and the order holds.
@Suite struct ReadyWindowPropertyTests {
    private struct Stored {
        let position: ReadyPosition
        let host: String?
        var id: JobID { position.id }
        var key: ConcurrencyKey { ConcurrencyKey(host: host) }
    }

    private struct Model {
        var window = ReadyWindow(horizon: .end)
        /// What the store gives: all that waits or runs.
        var stored: [JobID: Stored] = [:]
        var active: Set<JobID> = []
        /// Of `active`: what waits for a slot in the middle of its chain.
        var parked: Set<JobID> = []
        var closed: Set<ConcurrencyKey> = []
        var last: JobID = 0
        /// A read and what the store gave for it.
        var read: (request: ReadyWindow.Request, rows: [Stored])?
        var generator: SeededGenerator

        mutating func submit() {
            last += 1
            let priority = generator.chance(0.15) ? Int.random(in: -3...3, using: &generator) : 0
            let job = Stored(
                position: ReadyPosition(priority: priority, id: last), host: generator.pick([nil, "a", "a", "b", "c"]))
            stored[last] = job
            window.insert(entry(job))
        }

        func entry(_ job: Stored, isPinned: Bool = false) -> ReadyWindow.Entry {
            ReadyWindow.Entry(job.position, job.key, parent: nil, job: nil, isPinned: isPinned)
        }

        mutating func pop(checkingOrder: Bool) {
            let closed = closed
            guard let entry = window.first(where: { !closed.contains($0) }) else { return }
            window.pop(entry)
            let id = entry.position.id
            #expect(!closed.contains(entry.key), "its key is open")
            if entry.isPinned {
                #expect(parked.remove(id) != nil, "job \(id) waited for a slot")
                return
            }
            #expect(stored[id] != nil, "job \(id) is there")
            #expect(active.insert(id).inserted, "job \(id) is not given twice")
            guard checkingOrder else { return }
            let first = stored.values.lazy.filter { [active] in !active.contains($0.id) }.map(\.position).min()
            #expect(first.map { entry.position < $0 } ?? true, "job \(id) is the first")
        }

        mutating func beginRead() {
            let closed = closed
            guard let request = window.nextRequest(hasRoom: true, isOpen: { !closed.contains($0) }) else { return }
            #expect(read == nil, "one at a time")
            let sorted = stored.values.sorted { $0.position < $1.position }
            switch request {
            case .more(let after):
                let behind = sorted.filter { job in after.map { $0 < job.position } ?? true }
                read = (request, Array(behind.prefix(ReadyWindow.size)))
            case .around(let hosts, let after):
                let others = sorted.filter { job in
                    !(job.host.map(hosts.contains) ?? false) && after.map { $0 < job.position } ?? true
                }
                read = (request, Array(others.prefix(ReadyWindow.aroundSize)))
            }
        }

        /// `removed` is what was stored when the read began and is not any more.
        mutating func endRead() {
            guard let (request, rows) = read else { return }
            read = nil
            let limit = if case .more = request { ReadyWindow.size } else { ReadyWindow.aroundSize }
            let entries = rows.filter { !active.contains($0.id) && stored[$0.id] != nil }.map { entry($0) }
            window.received(entries, isLast: rows.count < limit, last: rows.last?.position)
        }

        mutating func remove(_ id: JobID) {
            if active.remove(id) != nil { parked.remove(id) }
            stored[id] = nil
            window.remove(id)
        }

        mutating func park(_ id: JobID) {
            guard let job = stored[id] else { return }
            parked.insert(id)
            window.insert(entry(job, isPinned: true))
        }

        /// Lets all that is left run to its end.
        mutating func drain() {
            endRead()
            closed = []
            while true {
                while window.first(where: { _ in true }) != nil { pop(checkingOrder: false) }
                beginRead()
                guard read != nil else { break }
                endRead()
            }
            #expect(parked.isEmpty)
            let lost = Set(stored.keys).subtracting(active)
            #expect(lost.isEmpty, "all that is stored was given: lost are \(lost.count)")
            #expect(window.isEmpty)
        }
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func jobs_areGivenOnce_whateverHappens(_ seed: UInt64) {
        var model = Model(generator: SeededGenerator(seed: seed))
        for step in 0..<1000 {
            switch Int.random(in: 0..<14, using: &model.generator) {
            case 0, 1, 2: for _ in 0..<Int.random(in: 0..<60, using: &model.generator) { model.submit() }
            case 3, 4, 5:
                for _ in 0..<Int.random(in: 0..<40, using: &model.generator) { model.pop(checkingOrder: false) }
            case 6, 7: model.beginRead()
            case 8, 9: model.endRead()
            case 10:
                let ended = model.active.subtracting(model.parked).sorted()
                for id in ended.prefix(Int.random(in: 0..<60, using: &model.generator)) { model.remove(id) }
            case 11: if let id = model.stored.keys.min() { model.remove(id) }
            case 12: if let id = model.active.subtracting(model.parked).min() { model.park(id) }
            default:
                model.closed = Set(
                    ["a", "b", "c"].filter { _ in step % 3 != 0 && model.generator.chance(0.5) }
                        .map(ConcurrencyKey.host))
            }
            // It is bounded: the pinned ones aside, twice what is read at once, and what is read around hosts.
            #expect(
                model.window.count - model.parked.count <= JobCore.windowSize + ReadyWindow.size
                    + ReadyWindow.aroundSize)
        }
        model.drain()
    }

    @Test(arguments: 1...2 as ClosedRange<UInt64>)
    func jobs_startInOrder_howeverManyThereAre(_ seed: UInt64) {
        var model = Model(generator: SeededGenerator(seed: seed))
        for _ in 0..<3000 { model.submit() }
        for _ in 0..<120 {
            for _ in 0..<Int.random(in: 0..<20, using: &model.generator) { model.submit() }
            for _ in 0..<Int.random(in: 0..<30, using: &model.generator) { model.pop(checkingOrder: true) }
            model.beginRead()
            if model.generator.chance(0.5) { model.submit() }
            model.endRead()
        }
        model.drain()
    }

    @Test func jobs_areReadAll_afterARestart() {
        var model = Model(generator: SeededGenerator(seed: 7))
        for _ in 0..<5000 { model.submit() }
        model.window = ReadyWindow(horizon: .start)
        model.drain()
        #expect(model.active.count == 5000)
    }
}
