/// An event that an administrator may want to know about, with its number; systemd/deferd.catalog explains them.
///
/// Log entries contain its name (`event`) and its number (`MESSAGE_ID`). Neither ever changes, because filters refer to them.
package enum CatalogEvent: String, Sendable, CaseIterable {
    case serving = "3ceaaf30814248ea91d93080f9b439fc"
    case stopped = "9dfb369bab134faea27655daa05f1119"
    case startFailed = "6301bbfca0c5454e8ff9bb510944fe0c"
    case reloaded = "6fced11d2bd841e6847a8387cdde8d51"
    case reloadRefused = "3a124c647e024f05b7c1dce27f7695f5"
    case storageFailed = "66080f174c9648e29cbd0ba3a1a6bcde"
    case storageWorks = "b120a366f0bb49cf82f2dc05873f9bd0"
    case diskShort = "78b7d0ac84774ce08e4cda11b43c589b"
    case diskRoom = "2330fcf1562a44b888668d77e827062c"
    case logStuck = "c1acc9906424450aa36bf9b3ddcb369d"
    case jobUnreadable = "9ad9b9a25e78454db065a1c284cc4549"
    case stateDamaged = "5b1d2e7c0a9f4c6e8d3b7a41f06c92de"
    case defect = "993565976fba4662b6a730b7b12e9eed"
    case watchdogUnfed = "8df08078a22e418085c2c2af3977a654"
    case connectionRefused = "f3194a3b381e43e7952c466e473a1797"
    case clientClosed = "c498b6e73648445e9afa3a387f006745"
    case jobFailed = "ab57f985433243daa75a2e199b58ba8d"

    /// The name of the case in lower case, its words joined by hyphens.
    package var name: String {
        "\(self)".reduce(into: "") { $0 += $1.isUppercase ? "-\($1.lowercased())" : "\($1)" }
    }

    private static let byName = Dictionary(uniqueKeysWithValues: allCases.map { ($0.name, $0) })

    package init?(name: String) {
        guard let event = Self.byName[name] else { return nil }
        self = event
    }
}
