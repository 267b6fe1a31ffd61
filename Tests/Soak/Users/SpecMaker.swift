import JobModel
import TestSupport

/// Jobs by chance, of every kind.
struct SpecMaker {
    let server: SoakServer
    let owner: Int
    var random: SeededGenerator

    /// A job of the kinds that an ordinary user has.
    mutating func ordinary() -> JSON {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: return value(.string(String(repeating: "v", count: Int.random(in: 0...2000, using: &random))))
        case 1: return chain()
        case 2: return ["source": ["type": "list", "jobs": [value(1), fetch(.document), value(2)], "mode": "all"]]
        case 3: return ["source": ["type": "list", "jobs": [timer(0.2), fetch(.document), timer(5)], "mode": "first"]]
        case 4:
            return [
                "source": [
                    "type": "each", "in": [1, 2, 3, 4], "concurrency": 2,
                    "job": ["source": ["type": "value", "value": ["{{item}}", "{{index}}"]]],
                ]
            ]
        case 5: return download(.file)
        // The cut one goes on from where it ended.
        case 6: return with(download(.cutFile), "retry", ["max": 3, "initial": 0.05])
        case 7:
            return with(fetch(random.pick([.tooShort, .earlyClose, .century])), "retry", ["max": 2, "initial": 0.1])
        case 8: return timer(Double.random(in: 0...1, using: &random))
        case 9: return with(value(["k": 1]), "key", .string("key-\(Int.random(in: 0..<20, using: &random))"))
        case 10: return with(fetch(.moved), "delay", JSON(Double.random(in: 0...0.5, using: &random)))
        default: return ["source": ["type": "json", "url": .string(server.url(.document)), "select": "/items/2/name"]]
        }
    }

    /// A job whose server does its worst.
    mutating func hostile() -> JSON {
        let behaviour = random.pick(Behaviour.hostile)
        let spec =
            switch Int.random(in: 0..<3, using: &random) {
            case 0: fetch(behaviour)
            case 1: download(behaviour)
            default: ["source": ["type": "json", "url": .string(server.url(behaviour))]] as JSON
            }
        return with(
            with(spec, "timeout", JSON(Double.random(in: 0.3...1.5, using: &random))), "retry",
            ["max": 1, "initial": 0.1])
    }

    /// One of the many of a greedy user.
    func greedy(_ number: Int) -> JSON { with(with(value(JSON(number)), "priority", 1000), "tags", ["flood"]) }

    private func chain() -> JSON {
        [
            "source": ["type": "json", "url": .string(server.url(.document))],
            "then": [
                ["then": ["return": ["first": "{{input/items/0}}"]]],
                ["then": ["throw": ["kind": "odd", "message": "{{input/first}}"]]],
                ["fail": ["source": ["type": "timer", "seconds": 0.05]], "on": ["odd"]],
                ["finally": ["source": ["type": "url", "url": .string(server.url(.document))]]],
            ],
            "tags": ["chain"],
        ]
    }

    private func value(_ value: JSON) -> JSON { ["source": ["type": "value", "value": value]] }

    private func timer(_ seconds: Double) -> JSON { ["source": ["type": "timer", "seconds": JSON(seconds)]] }

    private func fetch(_ behaviour: Behaviour) -> JSON {
        ["source": ["type": "url", "url": .string(server.url(behaviour))]]
    }

    /// Into one of a few files, so that the directory does not grow by what was asked for.
    private mutating func download(_ behaviour: Behaviour) -> JSON {
        let path = "\(behaviour.rawValue)-\(Int.random(in: 0..<2, using: &random))"
        return [
            "source": [
                "type": "download", "url": .string(server.url(behaviour)), "path": .string(path), "exists": "replace",
            ]
        ]
    }

    private func with(_ spec: JSON, _ name: String, _ value: JSON) -> JSON {
        guard var object = spec.object else { return spec }
        object[name] = value
        return .object(object)
    }
}
