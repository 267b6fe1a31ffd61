import JobModel
import JobCore

/// The world that a seed creates: limits, queues, hosts, users and fault rates.
struct Scenario {
    var settings = CoreSettings()
    var queues: [String] = []
    var hosts: [HostProfile] = []
    var users: [UserProfile] = []
    /// The mean number of effects between crashes; nil for no crashes.
    var effectsBetweenCrashes: Double?
    /// The mean number of rounds between store faults; nil for no faults.
    var roundsBetweenFaults: Double?
    /// The mean seconds between changes of the wall clock; nil for none.
    var secondsBetweenClockSets: Double?
    /// Seconds between two changes by an administrator.
    var secondsBetweenChanges = 1200.0

    /// Daemons on the store; most seeds have one.
    var nodes = 1
    /// The mean seconds between damaged or unreadable rows; nil for none.
    var secondsBetweenBadRows: Double?

    init(random: inout SeededGenerator, damages: inout SeededGenerator, chances: inout SeededGenerator) {
        if damages.chance(0.4) { secondsBetweenBadRows = damages.spread(300, 8_000) }
        settings.limits.children = random.pick([5, 12, 40, 400])
        settings.limits.links = 12
        // A simulated job rarely has ten minutes for its retries.
        settings.limits.retry = RetryPolicy(max: 4, initial: 0.5, factor: 2, maxDelay: 60, jitter: true)
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
                perUser: random.chance(0.4) ? random.within(1...6) : nil,
                startRate: damages.chance(0.3)
                    ? StartRate(count: damages.within(1...20), seconds: damages.spread(5, 60)) : nil)
        }
        hosts = (0..<random.within(3...8)).map { HostProfile(number: $0, random: &random) }
        users = UserProfile.all(random: &random)
        if random.chance(0.8) { effectsBetweenCrashes = random.spread(500, 20_000) }
        if random.chance(0.7) { roundsBetweenFaults = random.spread(200, 5_000) }
        if random.chance(0.6) { secondsBetweenClockSets = random.spread(1_800, 40_000) }
        secondsBetweenChanges = random.spread(300, 10_000)
        if chances.chance(0.3) { nodes = chances.within(2...3) }
    }

    /// Returns the name and port of `http://NAME/...`, the form of all simulated URLs; nil if policy refuses the URL.
    static func host(of url: String) -> String? {
        let prefix = "http://"
        guard url.utf8.starts(with: prefix.utf8) else { return nil }
        let name = url.utf8.dropFirst(prefix.utf8.count).prefix { $0 != UInt8(ascii: "/") }
        guard !name.isEmpty, !name.elementsEqual("denied.test".utf8) else { return nil }
        return String(Substring(name)) + ":80"
    }
}

/// The behaviour of a host.
struct HostProfile {
    /// The factor by which its answers take longer.
    let slowness: Double
    let failureRate: Double
    /// The fraction of requests that it never answers.
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

/// The behaviour of a user.
struct UserProfile {
    enum Character {
        case honest
        case greedy
        case hostile
    }

    let uid: UInt32
    let character: Character
    let isAdmin: Bool
    /// The mean seconds between bouts of activity.
    let pause: Double

    /// Active hours of each 24, from the start of the simulation; one user in four never sleeps.
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
