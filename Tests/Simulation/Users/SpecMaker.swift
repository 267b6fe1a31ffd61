import JobModel

/// Writes job specs as users would: trees of sources, lists and links, mostly sensible.
struct SpecMaker {
    var queues: [String]
    var hosts: Int
    /// The most children of one list.
    var children: Int
    var depth: Int
    /// Bounds the whole tree.
    var budget = 40
    /// Whether many jobs have short deadlines and a `finally` link.
    var hasPressingDeadlines = false
    /// Earlier jobs, to wait for.
    var jobs: [JobID] = []
    /// The current time, for `notBefore`.
    var now: Timestamp

    /// Returns a job with a random selection of all members.
    mutating func job(_ random: inout SeededGenerator, level: Int = 0, inEach: Bool = false) -> JSON {
        budget -= 1
        var job = JSONObject()
        job.append("source", source(&random, level: level, inEach: inEach))
        let links = random.choose([50, 25, 12, 8, 5])
        var then = (0..<links).map { _ in link(&random, level: level) }
        if hasPressingDeadlines, random.chance(0.4) { then.append(["finally": step(&random, level: level)]) }
        if !then.isEmpty { job.append("then", .array(then)) }
        if random.chance(0.3) { job.append("queue", .string(queue(&random))) }
        if random.chance(0.2) { job.append("priority", JSON(random.within(-1000...1000))) }
        if random.chance(0.08) {
            job.append("delay", JSON(random.pick([0, 0.01, 1, 30, 600, 20_000])))
        } else if random.chance(0.02) {
            let seconds = random.pick([-100.0, 5, 3_000])
            job.append("notBefore", .string(now.adding(seconds: seconds).description))
        }
        if hasPressingDeadlines, random.chance(0.4) {
            // Some pass just as a link's end is being stored.
            job.append("deadline", JSON(random.spread(0.1, 20)))
        } else if random.chance(0.08) {
            job.append("deadline", JSON(random.spread(0.5, 5_000).rounded(.up)))
        }
        if random.chance(0.15) { job.append("timeout", JSON(random.spread(0.2, 200))) }
        if random.chance(0.3) { job.append("retry", Self.retry(&random)) }
        if level == 0, random.chance(0.06) { job.append("key", .string("key-\(random.below(12))")) }
        if level == 0, random.chance(0.3) { job.append("keyUntil", "finished") }
        if random.chance(0.02) { job.append("held", true) }
        if random.chance(0.2) { job.append("tags", [.string("t\(random.below(4))")]) }
        if random.chance(0.1) { job.append("label", .string(Self.text(&random, 250))) }
        return .object(job)
    }

    private func queue(_ random: inout SeededGenerator) -> String {
        random.chance(0.02) ? "no such queue" : random.pick(queues)
    }

    static func retry(_ random: inout SeededGenerator) -> JSON {
        [
            "max": JSON(random.pick([0, 1, 2, 5])), "initial": JSON(random.pick([0, 0.05, 1, 20])),
            "maxDelay": JSON(random.pick([0.1, 5, 60])), "jitter": .bool(random.chance(0.7)),
        ]
    }

    private static func text(_ random: inout SeededGenerator, _ longest: Int) -> String {
        String(repeating: "l", count: random.within(1...longest))
    }

    func url(_ random: inout SeededGenerator) -> String {
        if random.chance(0.005) { return random.pick(["http://denied.test/", "http://other.test/f", "ftp://x", ""]) }
        let letter = random.pick(["f", "f", "f", "m", "m", "s", "e"])
        return "http://\(HostProfile.name(random.below(hosts)))/\(letter)"
    }

    mutating func source(_ random: inout SeededGenerator, level: Int, inEach: Bool = false) -> JSON {
        let canNest = level < depth && budget > 0
        switch random.choose([36, 12, 14, 7, 4, 7, canNest ? 10 : 0, canNest ? 8 : 0, jobs.isEmpty ? 0 : 8]) {
        case 0: return ["type": "url", "url": .string(inEach ? url(&random) + "{{index}}" : url(&random))]
        case 1:
            let url = url(&random)
            return ["type": "json", "url": .string(url), "method": url.hasSuffix("/s") ? "POST" : "GET"]
        case 2:
            let path = random.chance(0.01) ? "/forbidden/x" : "file-\(random.below(1000))"
            if random.chance(0.1) { return ["type": "upload", "url": .string(url(&random)), "path": .string(path)] }
            var download = JSONObject()
            download.append("type", "download")
            download.append("url", .string(url(&random)))
            download.append("path", .string(path))
            if random.chance(0.2) { download.append("segments", JSON(random.within(1...16))) }
            return .object(download)
        case 3: return ["type": "value", "value": inEach ? "{{item}}" : value(&random)]
        case 4: return ["type": "error", "kind": "odd", "message": "written to fail"]
        case 5: return ["type": "timer", "seconds": JSON(random.pick([0, 0.1, 2, 60, 1800]))]
        case 8:
            if level > 0, random.chance(0.3) { return ["type": "job", "job": "{{input}}"] }
            return ["type": "job", "job": JSON(Int(random.pick(jobs)))]
        case 6:
            let count = random.choose([5, 20, 25, 20, 15, 10, 5])
            let jobs = (0..<count).map { _ in job(&random, level: level + 1) }
            return list("list", ("jobs", .array(jobs)), &random)
        default:
            let most = random.chance(0.04) ? children : min(children, 12)
            let count = random.chance(0.02) ? children + 1 : random.within(0...most)
            budget -= min(count, 12)
            let items = JSON.array((0..<count).map { JSON($0) })
            var json = list("each", ("in", items), &random).object ?? JSONObject()
            json.append("job", job(&random, level: level + 1, inEach: true))
            return .object(json)
        }
    }

    private func list(_ type: String, _ members: (String, JSON), _ random: inout SeededGenerator) -> JSON {
        var json = JSONObject()
        json.append("type", .string(type))
        json.append(members.0, members.1)
        if random.chance(0.7) { json.append("mode", .string(random.pick(["settled", "all", "first"]))) }
        if random.chance(0.4) { json.append("concurrency", JSON(random.within(1...4))) }
        return .object(json)
    }

    private func value(_ random: inout SeededGenerator) -> JSON {
        switch random.below(4) {
        case 0: .null
        case 1: JSON(random.below(1_000_000))
        case 2: ["a": [1, 2, ["b": "c"]]]
        // Some make a step long, so that it waits for its turn.
        default: .string(Self.text(&random, random.chance(0.1) ? 8_000 : 50))
        }
    }

    private mutating func link(_ random: inout SeededGenerator, level: Int) -> JSON {
        switch random.choose([45, 15, 10, 15, 15]) {
        case 0: return ["then": step(&random, level: level)]
        case 1:
            guard random.chance(0.5) else { return ["fail": step(&random, level: level)] }
            return ["fail": step(&random, level: level), "on": ["network", "timeout", "odd", "list", "interrupted"]]
        case 2: return ["then": step(&random, level: level), "fail": step(&random, level: level)]
        case 3: return ["both": step(&random, level: level)]
        default: return ["finally": step(&random, level: level)]
        }
    }

    private mutating func step(_ random: inout SeededGenerator, level: Int) -> JSON {
        var step = JSONObject()
        switch random.choose([55, 30, 15]) {
        case 0:
            var source = source(&random, level: level + 1)
            // Some hosts are known only when the link runs, and may not exist.
            if random.chance(0.03), source["url"] != nil, var object = source.object {
                object["url"] = "http://h{{job/attempt}}.test/f"
                source = .object(object)
            }
            step.append("source", source)
            if random.chance(0.2) { step.append("timeout", JSON(random.spread(0.2, 100))) }
            if random.chance(0.3) { step.append("retry", Self.retry(&random)) }
        case 1: step.append("return", random.chance(0.3) ? ["job": "{{job/id}}"] : value(&random))
        default: step.append("throw", ["kind": "odd", "message": "thrown"])
        }
        return .object(step)
    }
}
