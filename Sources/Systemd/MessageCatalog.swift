/// The message ids of important events by name; systemd/deferd.catalog explains them. They never change, because
/// filters refer to them.
package enum MessageCatalog {
    /// The key of the metadata that names the event.
    package static let key = "event"

    package static let ids: [String: String] = [
        "serving": "3ceaaf30814248ea91d93080f9b439fc",
        "stopped": "9dfb369bab134faea27655daa05f1119",
        "start-failed": "6301bbfca0c5454e8ff9bb510944fe0c",
        "reloaded": "6fced11d2bd841e6847a8387cdde8d51",
        "reload-refused": "3a124c647e024f05b7c1dce27f7695f5",
        "storage-failed": "66080f174c9648e29cbd0ba3a1a6bcde",
        "storage-works": "b120a366f0bb49cf82f2dc05873f9bd0",
        "disk-short": "78b7d0ac84774ce08e4cda11b43c589b",
        "disk-room": "2330fcf1562a44b888668d77e827062c",
        "log-stuck": "c1acc9906424450aa36bf9b3ddcb369d",
        "job-unreadable": "9ad9b9a25e78454db065a1c284cc4549",
        "state-damaged": "5b1d2e7c0a9f4c6e8d3b7a41f06c92de",
        "defect": "993565976fba4662b6a730b7b12e9eed",
        "watchdog-unfed": "8df08078a22e418085c2c2af3977a654",
        "connection-refused": "f3194a3b381e43e7952c466e473a1797",
        "client-closed": "c498b6e73648445e9afa3a387f006745",
        "job-failed": "ab57f985433243daa75a2e199b58ba8d",
    ]
}
