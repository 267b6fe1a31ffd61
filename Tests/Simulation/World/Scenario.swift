import JobCore
import JobModel

/// What a seed makes of the world: limits, queues, hosts, users, and how much goes wrong.
struct Scenario {
    var settings = CoreSettings()
    var queues: [String] = []
    var hosts: [HostProfile] = []
    var users: [UserProfile] = []
    /// Effects between two crashes, on average; nil where there are none.
    var effectsBetweenCrashes: Double?
    /// Seconds between two faults of the store, on average; nil where there are none.
    var secondsBetweenFaults: Double?
    /// Seconds between two settings of the wall clock, on average; nil where it is never set.
    var secondsBetweenClockSets: Double?
    /// Seconds between two changes that an administrator makes.
    var secondsBetweenChanges = 1200.0

    static let defaultQueue = "default"
    /// A queue of simple jobs of about the same length, in which shares can be measured.
    static let fairQueue = "fair"
    private(set) var hasFairQueue = false
    /// A queue in which two owners can have all slots between them. Administrators leave it alone.
    static let narrowQueue = "narrow"

    init(random: inout SeededGenerator, hasCrowds: Bool = false, hasBusyHosts: Bool = false) {
        settings.limits.children = random.pick([5, 12, 40])
        settings.limits.links = 12
        settings.limits.depth = random.within(2...4)
        settings.limits.queuedJobs = random.pick([300, 1000, 5000])
        settings.limits.queuedJobsPerUser = random.pick([60, 200, 1000])
        settings.limits.body = 1 << 20
        settings.ownersShare = random.pick([0.75, 0.5, 1])
        settings.perHost = random.within(1...6)
        settings.longestBackOff = random.pick([60, 3600])
        settings.openLists = random.pick([2, 8, 256])
        settings.retentionAge = random.spread(600, 604_800)
        settings.retentionCount = random.pick([20, 200, 1000])
        settings.retentionBytes = random.pick([100_000, 1 << 20, 1 << 30])
        settings.storedPerUser = random.pick([200_000, 4 << 20, 1 << 30])
        if hasCrowds || hasBusyHosts {
            // There has to be room for so many jobs.
            settings.limits.queuedJobs = 10_000
            settings.limits.queuedJobsPerUser = 2_000
            settings.storedPerUser = 1 << 30
        }
        // In a crowd few lists are open.
        if hasCrowds { settings.openLists = min(settings.openLists, 8) }
        // One owner's job leaves room for that of another.
        if hasBusyHosts { settings.perHost = max(3, settings.perHost) }
        queues = [Self.defaultQueue] + (1...random.within(1...3)).map { "q\($0)" }
        settings.queues = queues.map { name in
            QueueSettings(
                name: name, concurrency: random.pick([1, 2, 4, 8, 16]),
                perUser: random.chance(0.4) ? random.within(1...6) : nil)
        }
        if random.chance(0.5) {
            settings.queues.append(QueueSettings(name: Self.fairQueue, concurrency: random.within(3...12)))
            hasFairQueue = true
        }
        if hasBusyHosts { settings.queues.append(QueueSettings(name: Self.narrowQueue, concurrency: 3, perUser: 2)) }
        hosts = (0..<random.within(3...8)).map { HostProfile(number: $0, random: &random) }
        users = UserProfile.all(random: &random)
        if random.chance(0.8) { effectsBetweenCrashes = random.spread(2_000, 60_000) }
        if random.chance(0.6) { secondsBetweenFaults = random.spread(600, 20_000) }
        if random.chance(0.6) { secondsBetweenClockSets = random.spread(1_800, 40_000) }
        secondsBetweenChanges = random.spread(300, 10_000)
    }

    /// What URLs and paths there may be: hosts by name, nothing of `denied.test`, no path that begins with `/forbidden`.
    static let policy = ResourcePolicy(
        checkURL: { (url) throws(JobError) in
            guard let host = host(of: url) else {
                throw JobError(.invalid, "\"\(url.prefix(80))\" is no URL; write one that begins with http://.")
            }
            guard host != "denied.test:80" else { throw JobError(.policy, "denied.test may not be asked.") }
            return host
        },
        checkPath: { (path, _) throws(JobError) in
            guard !path.utf8.starts(with: "/forbidden".utf8) else {
                throw JobError(.policy, "Nothing may be written below /forbidden.")
            }
        })

    /// Name and port of `http://NAME/...`, as all URLs of a simulation are.
    static func host(of url: String) -> String? {
        let prefix = "http://"
        guard url.utf8.starts(with: prefix.utf8) else { return nil }
        let name = url.utf8.dropFirst(prefix.utf8.count).prefix { $0 != UInt8(ascii: "/") }
        guard !name.isEmpty else { return nil }
        return (String(Substring(name))) + ":80"
    }

    /// The number of a host by its name and port; nil for one that no profile is of.
    static func number(ofHost host: String) -> Int? {
        guard host.utf8.first == UInt8(ascii: "h") else { return nil }
        var number = 0
        for byte in host.utf8.dropFirst().prefix(while: { $0 != UInt8(ascii: ".") }) {
            guard (48...57).contains(byte), number < 1000 else { return nil }
            number = number * 10 + Int(byte - 48)
        }
        return number
    }
}

/// How a host behaves.
struct HostProfile {
    let number: Int
    /// By what its answers take longer.
    let slowness: Double
    let failureRate: Double
    /// How often it never answers.
    let silenceRate: Double
    /// How often a failure says when to come back.
    let retryAfterRate: Double

    init(number: Int, random: inout SeededGenerator) {
        self.number = number
        slowness = random.spread(0.1, 10)
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

    /// Of each 24 hours so many are worked, from the beginning of the simulation on; one in four never sleeps. The nights
    /// are for what takes long: delays, retries, retention, clocks.
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
