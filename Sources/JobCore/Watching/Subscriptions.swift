import JobModel

/// Who watches what.
///
/// Subscribers who watch the same and may see the same jobs share a topic: a job is matched against topics, not against
/// subscribers.
struct Subscriptions {
    private struct Topic {
        let key: Key
        /// In milliseconds.
        let interval: Int
        /// Whether no job was removed from it, so that another subscriber can join it.
        var isComplete = true
        var subscribers: [SubscriptionID] = []
        var includesChildren: Bool { key.scope.includesChildren }
    }

    private struct Key: Hashable {
        let scope: WatchScope
        /// Whose jobs it covers, nil for everybody's.
        let owner: UInt32?
    }

    private struct Tag: Hashable {
        let owner: UInt32?
        let text: String
    }

    /// A topic that covers a job.
    struct Match: Hashable {
        let topic: Int
        /// In milliseconds.
        let interval: Int
    }

    /// The topics that cover a job.
    struct Coverage {
        /// From the oldest.
        fileprivate(set) var matches: [Match] = []
        /// Their intervals, each once.
        fileprivate(set) var intervals: [Int] = []
    }

    /// What decides which topics cover a job that none of them names by its id.
    private struct Family: Equatable {
        let version: Int
        let owner: UInt32
        let isChild: Bool
        let isWhole: Bool
        let parents: [Ancestor]
        /// Those of a job without parents.
        let tags: [String]
    }

    private var topics: [Int: Topic] = [:]
    private var topicOf: [SubscriptionID: (topic: Int, owner: UInt32, joined: Int)] = [:]
    /// The topics that are complete.
    private var byKey: [Key: Int] = [:]
    private var byJob: [JobID: [Int]] = [:]
    /// By owner as well, as many that are somebody else's must not be passed over with each change of a job.
    private var byTag: [Tag: [Int]] = [:]
    private var ofAll: [UInt32?: [Int]] = [:]
    /// How many topics have an interval, in milliseconds.
    private var intervals: [Int: Int] = [:]
    private var lastTopic = 0
    /// Counts those that were added.
    private(set) var joins = 0
    /// Changes whenever another topic may cover a job than before.
    private(set) var version = 0

    /// What was last found for a family. A list tells of thousands of children at once, and thousands of topics can cover them.
    private var found: (family: Family, coverage: Coverage)?
    /// The subscribers that were last asked for: one array for as many notifications as go to the same.
    private var gathered: (matches: [Match], subscribers: [SubscriptionID])?

    /// The shortest interval of any of them, in milliseconds.
    private(set) var shortestInterval: Int?

    var isEmpty: Bool { topicOf.isEmpty }

    func contains(_ id: SubscriptionID) -> Bool { topicOf[id] != nil }
    var topicCount: Int { topics.count }

    /// How many there are, of one owner or of all.
    func count(of owner: UInt32?) -> Int {
        guard let owner else { return topicOf.count }
        return topicOf.values.count { $0.owner == owner }
    }

    mutating func add(_ id: SubscriptionID, _ scope: WatchScope, _ caller: Caller) {
        // Jobs that are named by id were checked to be the caller's.
        let owner: UInt32? = if case .jobs = scope.subject { nil } else { caller.isAdmin ? nil : caller.uid }
        let key = Key(scope: scope, owner: owner)
        let topic = byKey[key] ?? open(key)
        gathered = nil
        topics[topic]?.subscribers.append(id)
        joins += 1
        topicOf[id] = (topic, caller.uid, joins)
    }

    private mutating func open(_ key: Key) -> Int {
        let interval = key.scope.milliseconds
        lastTopic += 1
        version += 1
        topics[lastTopic] = Topic(key: key, interval: interval)
        byKey[key] = lastTopic
        switch key.scope.subject {
        case .jobs(let ids): for id in Set(ids) { byJob[id, default: []].append(lastTopic) }
        case .tag(let tag): byTag[Tag(owner: key.owner, text: tag), default: []].append(lastTopic)
        case .all: ofAll[key.owner, default: []].append(lastTopic)
        }
        intervals[interval, default: 0] += 1
        shortestInterval = min(shortestInterval ?? interval, interval)
        return lastTopic
    }

    mutating func remove(_ id: SubscriptionID) {
        guard let number = topicOf.removeValue(forKey: id)?.topic else { return }
        gathered = nil
        topics[number]?.subscribers.removeAll { $0 == id }
        guard let topic = topics[number], topic.subscribers.isEmpty else { return }
        if topic.isComplete { byKey[topic.key] = nil }
        topics[number] = nil
        version += 1
        switch topic.key.scope.subject {
        case .jobs(let ids): for id in ids { Self.drop(number, from: &byJob, id) }
        case .tag(let tag): Self.drop(number, from: &byTag, Tag(owner: topic.key.owner, text: tag))
        case .all: Self.drop(number, from: &ofAll, topic.key.owner)
        }
        let rest = (intervals[topic.interval] ?? 1) - 1
        intervals[topic.interval] = rest > 0 ? rest : nil
        if rest == 0, topic.interval == shortestInterval { shortestInterval = intervals.keys.min() }
    }

    private static func drop<Key: Hashable>(_ number: Int, from index: inout [Key: [Int]], _ key: Key) {
        index[key]?.removeAll { $0 == number }
        if index[key]?.isEmpty == true { index[key] = nil }
    }

    /// Removes a finished job from the topics that name it: no more notifications about it follow. A later watch of it
    /// is a new topic.
    mutating func finished(_ id: JobID) {
        guard let numbers = byJob.removeValue(forKey: id) else { return }
        version += 1
        for number in numbers {
            guard let topic = topics[number], topic.isComplete else { continue }
            topics[number]?.isComplete = false
            byKey[topic.key] = nil
        }
    }

    /// A job came into memory that may be an ancestor of jobs that were there before.
    mutating func parentCame() { version += 1 }

    /// Whether any topic covers descendants, those of a job or of the jobs with a tag.
    var coverDescendants: Bool { topics.values.contains { $0.includesChildren && $0.key.scope.subject != .all } }

    /// The topics that cover `job`, each once, from the oldest; the same while the version is the same. `parents` are
    /// the jobs above it, from the nearest; if some are missing there, topics may be missing, too.
    func matches(_ job: Job, parents: [Ancestor], isWhole: Bool = true) -> [Match] {
        if topicOf.isEmpty { return [] }
        var numbers = byJob[job.id] ?? []
        for parent in parents {
            numbers += (byJob[parent.id] ?? []).filter { topics[$0]?.includesChildren == true }
        }
        for owner in [nil, job.owner] {
            if isWhole {
                for tag in parents.last?.tags ?? job.spec.tags {
                    append(byTag[Tag(owner: owner, text: tag)], covering: job, to: &numbers)
                }
            }
            append(ofAll[owner], covering: job, to: &numbers)
        }
        if numbers.count > 1 { numbers = Array(Set(numbers)).sorted() }
        return numbers.compactMap { number in topics[number].map { Match(topic: number, interval: $0.interval) } }
    }

    /// The same, found once for a family.
    mutating func coverage(of job: Job, parents: [Ancestor], isWhole: Bool = true) -> Coverage {
        if topicOf.isEmpty { return Coverage() }
        guard byJob[job.id] == nil else {
            return Coverage(matches(job, parents: parents, isWhole: isWhole))
        }
        let family = Family(
            version: version, owner: job.owner, isChild: job.parent != nil, isWhole: isWhole, parents: parents,
            tags: parents.isEmpty ? job.spec.tags : [])
        if let found, found.family == family { return found.coverage }
        let coverage = Coverage(matches(job, parents: parents, isWhole: isWhole))
        found = (family, coverage)
        return coverage
    }

    private func append(_ candidates: [Int]?, covering job: Job, to numbers: inout [Int]) {
        for number in candidates ?? [] {
            if job.parent == nil || topics[number]?.includesChildren == true { numbers.append(number) }
        }
    }

    /// The subscribers who watch a job by its id and were not yet notified of its end.
    func subscribers(byID id: JobID) -> [SubscriptionID] { (byJob[id] ?? []).flatMap { subscribers(of: $0) } }

    func subscribers(of topic: Int) -> [SubscriptionID] { topics[topic]?.subscribers ?? [] }

    /// The subscribers of several topics; the same array as the last time where nothing has changed.
    mutating func subscribers(of matches: [Match]) -> [SubscriptionID] {
        guard matches.count > 1 else { return matches.first.map { subscribers(of: $0.topic) } ?? [] }
        if let gathered, gathered.matches == matches { return gathered.subscribers }
        let all = matches.flatMap { subscribers(of: $0.topic) }
        gathered = (matches, all)
        return all
    }

    /// The subscribers of a topic that were there when so many had been added.
    func subscribers(of topic: Int, since joins: Int) -> [SubscriptionID] {
        subscribers(of: topic).filter { (topicOf[$0]?.joined ?? .max) <= joins }
    }
}

extension Subscriptions.Coverage {
    fileprivate init(_ matches: [Subscriptions.Match]) {
        self.matches = matches
        intervals = Array(Set(matches.map(\.interval))).sorted()
    }
}
