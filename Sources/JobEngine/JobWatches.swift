import JobModel

/// Who watches what.
struct JobWatches {
    private struct Watch {
        let scope: WatchScope
        let caller: Caller
        let watcher: any JobWatcher
        var interval: Int { max(1, Int((scope.interval * 1000).rounded())) }
    }

    private var watches: [Int: Watch] = [:]
    private var byJob: [JobID: [Int]] = [:]
    private var byTag: [String: [Int]] = [:]
    private var ofAll: [Int] = []
    private var last = 0

    var count: Int { watches.count }

    mutating func add(_ scope: WatchScope, _ caller: Caller, _ watcher: any JobWatcher) -> Int {
        last += 1
        watches[last] = Watch(scope: scope, caller: caller, watcher: watcher)
        switch scope.subject {
        case .jobs(let ids): for id in Set(ids) { byJob[id, default: []].append(last) }
        case .tag(let tag): byTag[tag, default: []].append(last)
        case .all: ofAll.append(last)
        }
        return last
    }

    mutating func remove(_ number: Int) {
        guard let watch = watches.removeValue(forKey: number) else { return }
        switch watch.scope.subject {
        case .jobs(let ids): for id in ids { Self.drop(number, from: &byJob, id) }
        case .tag(let tag): Self.drop(number, from: &byTag, tag)
        case .all: ofAll.removeAll { $0 == number }
        }
    }

    private static func drop<Key: Hashable>(_ number: Int, from index: inout [Key: [Int]], _ key: Key) {
        index[key]?.removeAll { $0 == number }
        if index[key]?.isEmpty == true { index[key] = nil }
    }

    /// Nothing more comes about this job to those who watch it by number.
    mutating func finished(_ id: JobID) {
        byJob[id] = nil
    }

    /// Those who hear of `job`, each once; `parents` are the jobs above it, from the nearest.
    func watchers(of job: Job, parents: [Job], interval: Int? = nil) -> [any JobWatcher] {
        matching(job, parents).filter { interval == nil || $0.interval == interval }.map(\.watcher)
    }

    /// The intervals, in milliseconds, at which somebody wants to hear of the job's progress.
    func intervals(for job: Job, parents: [Job]) -> Set<Int> {
        if watches.isEmpty { return [] }
        return Set(matching(job, parents).map(\.interval))
    }

    private func matching(_ job: Job, _ parents: [Job]) -> [Watch] {
        if watches.isEmpty { return [] }
        var numbers = byJob[job.id] ?? []
        for parent in parents {
            numbers += (byJob[parent.id] ?? []).filter { watches[$0]?.scope.includesChildren == true }
        }
        let root = parents.last ?? job
        let isChild = job.parent != nil
        let general = root.spec.tags.flatMap { byTag[$0] ?? [] } + ofAll
        numbers += general.filter { number in
            guard let watch = watches[number] else { return false }
            return watch.caller.sees(job) && (!isChild || watch.scope.includesChildren)
        }
        if numbers.count > 1 { numbers = Array(Set(numbers)).sorted() }
        return numbers.compactMap { watches[$0] }
    }
}
