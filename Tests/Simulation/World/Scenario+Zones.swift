import JobModel

extension Scenario {
    /// A zone whose clocks are changed, made up so that a run does not depend on the machine.
    static let zones: [String: ZoneRules] = ["Test/Zone": zone("AAA-1BBB,M3.5.0,M10.5.0/3")]

    /// A zone that goes on year by year as `footer` says, from a file as tzdata writes it.
    private static func zone(_ footer: String) -> ZoneRules {
        let head = Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15)
        let counts: [UInt8] = [0, 0, 0, 0, 1, 1].flatMap { [0, 0, 0, $0] }
        let part = head + counts + [UInt8](repeating: 0, count: 7)
        return (try? ZoneRules(tzif: part + part + Array("\n\(footer)\n".utf8))) ?? .utc
    }
}
