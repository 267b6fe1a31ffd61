import JobModel
import TestSupport

/// Random jobs of every kind, which the label identifies.
struct SpecMaker {
    /// The jobs of an ordinary user, and whether jobs of each kind must succeed from time to time.
    enum Kind: String, CaseIterable {
        case value, chain, list, first, each, download, cutDownload, segments, upload, unanswered, timer, key, delayed
        case selected, body, program, progress, largeOutput, endless, leftOver, secure, secureDownload, wrongName

        /// Nil if both outcomes are allowed.
        var ends: Outcomes.End? {
            switch self {
            case .unanswered, .chain, .key: nil
            case .endless: .error("timeout")
            case .wrongName: .error("tls")
            default: .success
            }
        }
    }

    let servers: SoakServers
    var random: SeededGenerator

    /// A job of the kinds that an ordinary user has.
    mutating func ordinary() -> JSON {
        let kind = random.pick(Kind.allCases)
        return with(spec(kind), "label", .string(kind.rawValue))
    }

    private mutating func spec(_ kind: Kind) -> JSON {
        switch kind {
        case .value: return value(.string(String(repeating: "v", count: Int.random(in: 0...2000, using: &random))))
        case .chain: return chain()
        case .list:
            return ["source": ["type": "list", "jobs": [value(1), fetch(.document), value(2)], "mode": "all"]]
        case .first:
            return ["source": ["type": "list", "jobs": [timer(0.2), fetch(.document), timer(5)], "mode": "first"]]
        case .each:
            return [
                "source": [
                    "type": "each", "in": [1, 2, 3, 4], "concurrency": 2,
                    "job": ["source": ["type": "value", "value": ["{{item}}", "{{index}}"]]],
                ]
            ]
        case .download: return download(.file)
        // The interrupted download resumes where it ended.
        case .cutDownload: return with(download(.cutFile), "retry", ["max": 3, "initial": 0.05])
        case .segments:
            return with(
                download(random.chance(0.7) ? .file : .cutFile, to: "segments", segments: 4), "retry",
                ["max": 3, "initial": 0.05])
        case .upload: return upload()
        case .unanswered:
            return with(fetch(random.pick([.tooShort, .earlyClose, .century])), "retry", ["max": 2, "initial": 0.1])
        case .timer: return timer(Double.random(in: 0...1, using: &random))
        case .key: return with(value(["k": 1]), "key", .string("key-\(Int.random(in: 0..<20, using: &random))"))
        case .delayed: return with(fetch(.moved), "delay", JSON(Double.random(in: 0...0.5, using: &random)))
        case .selected:
            return ["source": ["type": "json", "url": .string(url(.document)), "select": "/items/2/name"]]
        case .body: return fetch(.large)
        case .program: return ["source": ["type": "program", "program": "cat", "input": ["n": [1, 2, 3]]]]
        case .progress:
            return shell(
                #"for n in 1 2 3; do echo "{\"progress\":{\"completed\":$n,\"total\":3}}"; done; echo done"#)
        case .largeOutput: return shell("head -c 100000 /dev/zero | tr '\\0' x")
        case .endless: return with(with(shell("exec sleep 100"), "timeout", 0.3), "retry", ["max": 0])
        // Its remaining processes end with it.
        case .leftOver: return shell("sleep 100 >/dev/null 2>&1 & echo 1")
        case .secure: return fetch(.document, of: servers.secure)
        case .secureDownload: return download(.file, of: servers.secure, to: "secure")
        case .wrongName: return fetch(.document, of: servers.wrongName)
        }
    }

    /// A job whose server does its worst.
    mutating func hostile() -> JSON {
        let behaviour = random.pick(Behaviour.hostile)
        let spec: JSON =
            switch Int.random(in: 0..<5, using: &random) {
            case 0: fetch(behaviour, of: servers.hostile)
            case 1: download(behaviour, of: servers.hostile)
            case 2: download(behaviour, of: servers.hostile, to: "hostile", segments: 4)
            case 3: upload(to: behaviour)
            default: ["source": ["type": "json", "url": .string(servers.hostile.url(behaviour))]]
            }
        return with(
            with(spec, "timeout", JSON(Double.random(in: 0.3...1.5, using: &random))), "retry",
            ["max": 1, "initial": 0.1])
    }

    /// One of the many of a greedy user.
    func greedy(_ number: Int) -> JSON { with(with(value(JSON(number)), "priority", 1000), "tags", ["flood"]) }

    /// The jobs of schedules.
    func scheduled() -> JSON {
        ["source": ["type": "value", "value": "{{schedule/name}}"], "tags": ["tick"], "label": "scheduled"]
    }

    private func chain() -> JSON {
        [
            "source": ["type": "json", "url": .string(url(.document))],
            "then": [
                ["then": ["return": ["first": "{{input/items/0}}"]]],
                ["then": ["throw": ["kind": "odd", "message": "{{input/first}}"]]],
                ["fail": ["source": ["type": "timer", "seconds": 0.05]], "on": ["odd"]],
                ["finally": ["source": ["type": "url", "url": .string(url(.document))]]],
            ],
            "tags": ["chain"],
        ]
    }

    private func value(_ value: JSON) -> JSON { ["source": ["type": "value", "value": value]] }

    private func timer(_ seconds: Double) -> JSON { ["source": ["type": "timer", "seconds": JSON(seconds)]] }

    private func url(_ behaviour: Behaviour) -> String { servers.good.url(behaviour) }

    private func fetch(_ behaviour: Behaviour, of server: SoakServer? = nil) -> JSON {
        ["source": ["type": "url", "url": .string((server ?? servers.good).url(behaviour))]]
    }

    private func shell(_ script: String) -> JSON {
        ["source": ["type": "program", "program": "shell", "arguments": [.string(script)]]]
    }

    /// Into one of a few files, so that the directory does not grow with the number of downloads.
    private mutating func download(
        _ behaviour: Behaviour, of server: SoakServer? = nil, to name: String? = nil, segments: Int = 1
    ) -> JSON {
        let path = "\(name ?? behaviour.rawValue)-\(Int.random(in: 0..<2, using: &random))"
        return [
            "source": [
                "type": "download", "url": .string((server ?? servers.good).url(behaviour)), "path": .string(path),
                "exists": "replace", "segments": JSON(segments),
            ]
        ]
    }

    /// Uploads a downloaded file. Another job of this user may replace the file meanwhile, after which the upload is
    /// retried.
    private mutating func upload(to behaviour: Behaviour? = nil) -> JSON {
        let server = behaviour == nil ? servers.good : servers.hostile
        let step: JSON = [
            "source": [
                "type": "upload", "url": .string(server.url(behaviour ?? .store)), "path": "{{input/path}}",
            ]
        ]
        return with(download(.file, to: "upload"), "then", [["then": step]])
    }

    private func with(_ spec: JSON, _ name: String, _ value: JSON) -> JSON {
        guard var object = spec.object else { return spec }
        object[name] = value
        return .object(object)
    }
}
