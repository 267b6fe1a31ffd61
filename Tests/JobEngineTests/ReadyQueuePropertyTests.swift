import JobModel
import JobStore
import Testing

@testable import JobEngine

/// A queue against a model of the store and the engine: no job is lost, none is given twice, and the order holds.
@Suite struct ReadyQueuePropertyTests {
    /// Random numbers that come out alike in every run.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state ^ (state >> 29)) &* 0xBF58_476D_1CE4_E5B9
        }
    }

    private struct Model {
        var queue: ReadyQueue
        /// What the store gives: all that waits or runs.
        var stored: [JobID: Job] = [:]
        var active: Set<JobID> = []
        /// Of `active`: what waits for a place in the middle of its chain.
        var parked: Set<JobID> = []
        var closed: Set<String> = []
        var last: JobID = 0
        /// A fetch and what the store gave for it.
        var fetch: (ReadyQueue.Fetch, [Job])?
        var generator: Generator
        var specs: [Int: JobSpec] = [:]

        func position(_ job: Job) -> ReadyPosition { ReadyPosition(priority: job.spec.priority, id: job.id) }

        mutating func submit() throws {
            last += 1
            let priority = generator.state % 7 == 0 ? Int.random(in: -3...3, using: &generator) : 0
            let spec =
                try specs[priority]
                ?? JobSpecReader.spec(["source": ["type": "error"], "priority": JSON(priority)], limits: JobLimits())
            specs[priority] = spec
            var job = Job(submitting: spec, owner: 1, at: Timestamp(milliseconds: 0))
            job.id = last
            job.host = [nil, "a", "a", "b", "c"].randomElement(using: &generator) ?? nil
            stored[last] = job
            queue.insert(ReadyQueue.Entry(job))
        }

        mutating func pop(checkingOrder: Bool) {
            guard queue.hasFreePlace, let entry = queue.popFirst(where: { [closed] in !closed.contains($0) }) else {
                return
            }
            let id = entry.position.id
            #expect(entry.host.map { !closed.contains($0) } ?? true, "its host is open")
            if entry.isUnderWay {
                #expect(parked.remove(id) != nil, "job \(id) waited for a place")
            } else {
                #expect(stored[id] != nil, "job \(id) is there")
                #expect(active.insert(id).inserted, "job \(id) is not given twice")
                if checkingOrder {
                    let first = stored.values.filter { !active.contains($0.id) }.map(position).min()
                    #expect(first.map { entry.position < $0 } ?? true, "job \(id) is the first")
                }
            }
            queue.running += 1
        }

        mutating func beginFetch() {
            guard let next = queue.nextFetch(closed: { [closed] in closed.contains($0) }) else { return }
            #expect(fetch == nil, "one at a time")
            let sorted = stored.values.sorted { position($0) < position($1) }
            switch next {
            case .more(let after):
                let behind = sorted.filter { job in after.map { $0 < position(job) } ?? true }
                fetch = (next, Array(behind.prefix(ReadyQueue.windowSize)))
            case .around(let hosts):
                let others = sorted.filter { $0.host.map { !hosts.contains($0) } ?? true }
                fetch = (next, Array(others.filter { !active.contains($0.id) }.prefix(64)))
            }
        }

        mutating func endFetch() {
            guard let (fetch, jobs) = fetch else { return }
            self.fetch = nil
            let active = active
            queue.fetched(fetch, jobs, limit: ReadyQueue.windowSize) { active.contains($0) }
        }

        /// Lets all that is left run to its end.
        mutating func drain() {
            endFetch()
            closed = []
            queue.settings.concurrency = .max
            while true {
                while let entry = queue.popFirst(where: { _ in true }) {
                    let id = entry.position.id
                    if entry.isUnderWay {
                        #expect(parked.remove(id) != nil)
                    } else {
                        #expect(stored[id] != nil && active.insert(id).inserted, "job \(id) is given once")
                    }
                }
                beginFetch()
                guard fetch != nil else { break }
                endFetch()
            }
            #expect(parked.isEmpty)
            #expect(
                Set(stored.keys) == active,
                "all that is stored was given: lost are \(Set(stored.keys).subtracting(active).count)")
            #expect(queue.isEmpty)
        }
    }

    private func model(_ seed: UInt64, concurrency: Int) -> Model {
        Model(
            queue: ReadyQueue(settings: QueueSettings(name: "q", concurrency: concurrency), storeIsEmpty: true),
            generator: Generator(state: seed))
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func jobs_areGivenOnce_whateverHappens(_ seed: UInt64) throws {
        var model = model(seed, concurrency: 100)
        for step in 0..<1500 {
            switch Int.random(in: 0..<14, using: &model.generator) {
            case 0, 1, 2:
                // A trim during a fetch has a test of its own.
                let most = model.fetch == nil ? 60 : 10
                for _ in 0..<Int.random(in: 0..<most, using: &model.generator) { try model.submit() }
            case 3, 4, 5:
                for _ in 0..<Int.random(in: 0..<40, using: &model.generator) { model.pop(checkingOrder: false) }
            case 6, 7:
                model.beginFetch()
            case 8, 9:
                model.endFetch()
            case 10:
                // Jobs end; not while a fetch is under way, which the engine has to look at by itself.
                guard model.fetch == nil else { break }
                for id in model.active.subtracting(model.parked).sorted().prefix(
                    Int.random(in: 0..<60, using: &model.generator))
                {
                    model.active.remove(id)
                    model.stored[id] = nil
                    model.queue.running -= 1
                }
            case 11:
                guard model.fetch == nil, let id = model.stored.keys.filter({ !model.active.contains($0) }).min() else {
                    break
                }
                model.stored[id] = nil
                model.queue.remove(id)
            case 12:
                guard let id = model.active.subtracting(model.parked).min(), let job = model.stored[id] else { break }
                model.parked.insert(id)
                model.queue.running -= 1
                model.queue.insert(
                    ReadyQueue.Entry(
                        position: model.position(job), queue: "q", host: job.host, job: nil, isUnderWay: true))
            default:
                model.closed = Set(
                    ["a", "b", "c"].filter { _ in step % 3 != 0 && Bool.random(using: &model.generator) })
            }
        }
        model.drain()
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func jobs_startInOrder_howeverManyThereAre(_ seed: UInt64) throws {
        var model = model(seed, concurrency: .max)
        for _ in 0..<3000 { try model.submit() }
        for _ in 0..<120 {
            for _ in 0..<Int.random(in: 0..<20, using: &model.generator) { try model.submit() }
            for _ in 0..<Int.random(in: 0..<30, using: &model.generator) { model.pop(checkingOrder: true) }
            model.beginFetch()
            if Bool.random(using: &model.generator) { try model.submit() }
            model.endFetch()
        }
        model.drain()
    }

    @Test func jobs_areFetchedAll_afterARestart() throws {
        var model = model(7, concurrency: 10)
        for _ in 0..<5000 { try model.submit() }
        model.queue = ReadyQueue(settings: QueueSettings(name: "q", concurrency: 10), storeIsEmpty: false)
        model.drain()
        #expect(model.active.count == 5000)
    }
}
