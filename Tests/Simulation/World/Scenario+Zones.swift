import JobModel

extension Scenario {
    /// Zones with changes of the clocks of all kinds, made up so that a run does not depend on the machine.
    static let zones: [String: ZoneRules] = [:]
}
