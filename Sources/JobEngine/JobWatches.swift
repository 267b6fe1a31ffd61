import JobModel

/// Who watches what.
///
/// Those who watch the same and see the same jobs are one audience: what a job matters to is looked up by audience, not
/// by watcher.
struct JobWatches {
    private struct Audience {
        let kind: Kind
        let interval: Int
        /// Whether it hears of all it ever heard of, so that another watch can join it.
        var isComplete = true
        var watchers: [(watch: Int, watcher: any JobWatcher)] = []
        var includesChildren: Bool { kind.scope.includesChildren }
    }

    private struct Kind: Hashable {
        let scope: WatchScope
        /// Whose jobs it hears of, nil for everybody's.
        let owner: UInt32?
    }

    private var audiences: [Int: Audience] = [:]
    /// The audience of each watch.
    private var watches: [Int: (audience: Int, caller: UInt32)] = [:]
    private var byCaller: [UInt32: Int] = [:]
    /// The audiences that are complete.
    private var byKind: [Kind: Int] = [:]
    private var byJob: [JobID: [Int]] = [:]
    private var byTag: [String: [Int]] = [:]
    private var ofAll: [Int] = []
    /// How many audiences have an interval, in milliseconds.
    private var intervals: [Int: Int] = [:]
    private var last = 0
    /// Changes whenever another audience may hear of a job than before.
    private(set) var version = 0

    var count: Int { watches.count }

    /// The watches of one user.
    func count(of caller: UInt32) -> Int { byCaller[caller, default: 0] }

    /// The shortest interval of any of them, in milliseconds.
    private(set) var shortest: Int?

    mutating func add(_ scope: WatchScope, _ caller: Caller, _ watcher: any JobWatcher) -> Int {
        last += 1
        // The jobs that are named the caller does see.
        let owner: UInt32? = if case .jobs = scope.subject { nil } else { caller.isAdmin ? nil : caller.uid }
        let kind = Kind(scope: scope, owner: owner)
        let audience = byKind[kind] ?? open(kind)
        audiences[audience]?.watchers.append((last, watcher))
        watches[last] = (audience, caller.uid)
        byCaller[caller.uid, default: 0] += 1
        return last
    }

    private mutating func open(_ kind: Kind) -> Int {
        let interval = max(1, Int((kind.scope.interval * 1000).rounded()))
        // No watch before has its number.
        let number = last
        version += 1
        audiences[number] = Audience(kind: kind, interval: interval)
        byKind[kind] = number
        switch kind.scope.subject {
        case .jobs(let ids): for id in Set(ids) { byJob[id, default: []].append(number) }
        case .tag(let tag): byTag[tag, default: []].append(number)
        case .all: ofAll.append(number)
        }
        intervals[interval, default: 0] += 1
        shortest = min(shortest ?? interval, interval)
        return number
    }

    mutating func remove(_ watch: Int) {
        guard let (number, caller) = watches.removeValue(forKey: watch) else { return }
        let others = byCaller[caller, default: 1] - 1
        byCaller[caller] = others > 0 ? others : nil
        audiences[number]?.watchers.removeAll { $0.watch == watch }
        guard let audience = audiences[number], audience.watchers.isEmpty else { return }
        if audience.isComplete { byKind[audience.kind] = nil }
        audiences[number] = nil
        version += 1
        switch audience.kind.scope.subject {
        case .jobs(let ids): for id in ids { Self.drop(number, from: &byJob, id) }
        case .tag(let tag): Self.drop(number, from: &byTag, tag)
        case .all: ofAll.removeAll { $0 == number }
        }
        let rest = (intervals[audience.interval] ?? 1) - 1
        intervals[audience.interval] = rest > 0 ? rest : nil
        if rest == 0, audience.interval == shortest { shortest = intervals.keys.min() }
    }

    private static func drop<Key: Hashable>(_ number: Int, from index: inout [Key: [Int]], _ key: Key) {
        index[key]?.removeAll { $0 == number }
        if index[key]?.isEmpty == true { index[key] = nil }
    }

    /// Nothing more comes about this job to those who watch it by number. Who begins to watch it later hears of it.
    mutating func finished(_ id: JobID) {
        guard let numbers = byJob.removeValue(forKey: id) else { return }
        version += 1
        for number in numbers {
            guard let audience = audiences[number], audience.isComplete else { continue }
            audiences[number]?.isComplete = false
            byKind[audience.kind] = nil
        }
    }

    /// A job came into memory that others may be below of, which were there before.
    mutating func familyCame() {
        version += 1
    }

    /// Whether nobody else is in the audience of a watch.
    func isAlone(_ watch: Int) -> Bool {
        watches[watch].flatMap { audiences[$0.audience]?.watchers.count } == 1
    }

    // MARK: - Who hears of a job

    /// An audience that hears of a job.
    struct Hearer: Hashable {
        let audience: Int
        /// In milliseconds.
        let interval: Int
    }

    /// Those who hear of `job`, each once; `parents` are the jobs above it, from the nearest.
    func watchers(of job: Job, parents: [Job]) -> [any JobWatcher] {
        hearers(of: job, parents: parents).flatMap { watchers(in: $0.audience) }
    }

    func watchers(in audience: Int) -> [any JobWatcher] {
        audiences[audience]?.watchers.map(\.watcher) ?? []
    }

    /// Whether somebody hears of `job` or of one above it, whose progress is made of that of those below.
    func needProgress(of job: Job, parents: [Job]) -> Bool {
        if watches.isEmpty { return false }
        if !hearers(of: job, parents: parents).isEmpty { return true }
        return parents.indices.contains { index in
            !hearers(of: parents[index], parents: Array(parents[(index + 1)...])).isEmpty
        }
    }

    /// The audiences that hear of `job`, each once, from the oldest; the same ones while the version is the same.
    func hearers(of job: Job, parents: [Job]) -> [Hearer] {
        if watches.isEmpty { return [] }
        var numbers = byJob[job.id] ?? []
        for parent in parents {
            numbers += (byJob[parent.id] ?? []).filter { audiences[$0]?.includesChildren == true }
        }
        for tag in parents.last?.spec.tags ?? job.spec.tags { append(byTag[tag], hearing: job, to: &numbers) }
        append(ofAll, hearing: job, to: &numbers)
        if numbers.count > 1 { numbers = Array(Set(numbers)).sorted() }
        return numbers.compactMap { number in
            audiences[number].map { Hearer(audience: number, interval: $0.interval) }
        }
    }

    private func append(_ candidates: [Int]?, hearing job: Job, to numbers: inout [Int]) {
        for number in candidates ?? [] {
            guard let audience = audiences[number], audience.kind.owner == nil || audience.kind.owner == job.owner,
                job.parent == nil || audience.includesChildren
            else { continue }
            numbers.append(number)
        }
    }
}
