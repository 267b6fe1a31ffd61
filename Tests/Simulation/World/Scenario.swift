import JobModel
import JobCore

/// What a seed makes of the world: limits, queues, hosts, users, and how much goes wrong.
struct Scenario {
    var settings = CoreSettings()
    var queues: [String] = []
    var hosts: [HostProfile] = []
    var users: [UserProfile] = []
    /// Effects between two crashes, on average; nil where there are none.
    var effectsBetweenCrashes: Double?
    /// Rounds between two faults of the store, on average; nil where there are none.
    var roundsBetweenFaults: Double?
    /// Seconds between two settings of the wall clock, on average; nil where it is never set.
    var secondsBetweenClockSets: Double?
    /// Seconds between two changes that an administrator makes.
    var secondsBetweenChanges = 1200.0

    /// Seconds between two rows that are damaged, or not to be read for a while, on average; nil where there are none.
    var secondsBetweenBadRows: Double?

    init(random: inout SeededGenerator, damages: inout SeededGenerator) {
        if damages.chance(0.4) { secondsBetweenBadRows = damages.spread(300, 8_000) }
        settings.limits.children = random.pick([5, 12, 40, 400])
        settings.limits.links = 12
        settings.limits.depth = random.within(2...4)
        settings.limits.queuedJobs = random.pick([300, 1000, 5000])
        settings.limits.queuedJobsPerUser = random.pick([60, 200, 1000])
        settings.ownersShare = random.pick([0.75, 0.5, 1])
        settings.perHost = random.within(1...6)
        settings.longestBackOff = random.pick([60, 3600])
        settings.retentionAge = random.spread(600, 604_800)
        settings.retentionCount = random.pick([20, 200, 1000])
        settings.retentionBytes = random.pick([100_000, 1 << 20, 1 << 30])
        settings.storedPerUser = random.pick([200_000, 4 << 20, 1 << 30])
        queues = ["default"] + (1...random.within(1...3)).map { "q\($0)" }
        settings.queues = queues.map { name in
            QueueSettings(
                name: name, concurrency: random.pick([1, 2, 4, 8, 16]),
                perUser: random.chance(0.4) ? random.within(1...6) : nil)
        }
        hosts = (0..<random.within(3...8)).map { HostProfile(number: $0, random: &random) }
        users = UserProfile.all(random: &random)
        if random.chance(0.8) { effectsBetweenCrashes = random.spread(500, 20_000) }
        if random.chance(0.7) { roundsBetweenFaults = random.spread(200, 5_000) }
        if random.chance(0.6) { secondsBetweenClockSets = random.spread(1_800, 40_000) }
        secondsBetweenChanges = random.spread(300, 10_000)
    }

    /// Name and port of `http://NAME/...`, as all URLs of a simulation are; nil for one that policy refuses.
    static func host(of url: String) -> String? {
        let prefix = "http://"
        guard url.utf8.starts(with: prefix.utf8) else { return nil }
        let name = url.utf8.dropFirst(prefix.utf8.count).prefix { $0 != UInt8(ascii: "/") }
        guard !name.isEmpty, !name.elementsEqual("denied.test".utf8) else { return nil }
        return String(Substring(name)) + ":80"
    }
}

/// How a host behaves.
struct HostProfile {
    /// By what its answers take longer.
    let slowness: Double
    let failureRate: Double
    /// How often it never answers.
    let silenceRate: Double
    let retryAfterRate: Double

    init(number: Int, random: inout SeededGenerator) {
        slowness = random.spread(0.2, 5)
        failureRate = random.pick([0.02, 0.1, 0.5])
        silenceRate = random.pick([0, 0.002, 0.03])
        retryAfterRate = random.pick([0, 0.1, 0.5])
    }

    static func name(_ number: Int) -> String { "h\(number).test" }
}

/// Who uses the daemon, and how.
struct UserProfile {
    enum Character {
        case honest
        case greedy
        case hostile
    }

    let uid: UInt32
    let character: Character
    let isAdmin: Bool
    /// Seconds between two bouts of activity, on average.
    let pause: Double

    /// Of each 24 hours so many are worked, from the beginning of the simulation on; one in four never sleeps.
    var hoursOfWork: Double { [24, 12, 10, 8][Int(pause) % 4] }

    static func all(random: inout SeededGenerator) -> [UserProfile] {
        var users: [UserProfile] = []
        func add(_ count: Int, _ character: Character, _ low: Double, _ high: Double) {
            for _ in 0..<count {
                users.append(
                    UserProfile(
                        uid: UInt32(1000 + users.count), character: character, isAdmin: random.chance(0.1),
                        pause: random.spread(low, high)))
            }
        }
        add(random.within(1...4), .honest, 30, 300)
        add(random.within(0...2), .greedy, 1_000, 6_000)
        add(random.within(0...2), .hostile, 600, 4_000)
        return users
    }
}
