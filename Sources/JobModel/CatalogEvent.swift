/// What an administrator may want to be told of: its name stands with the log's entry (`event`), and the journal has a number
/// for each (`MESSAGE_ID`), which systemd/deferd.catalog explains.
package enum CatalogEvent: String, Sendable, CaseIterable {
    case serving
    case stopped
    case startFailed = "start-failed"
    case reloaded
    case reloadRefused = "reload-refused"
    case storageFailed = "storage-failed"
    case storageWorks = "storage-works"
    case diskShort = "disk-short"
    case diskRoom = "disk-room"
    case logStuck = "log-stuck"
    case jobUnreadable = "job-unreadable"
    case stateDamaged = "state-damaged"
    case defect
    case connectionRefused = "connection-refused"
    case clientClosed = "client-closed"
    case jobFailed = "job-failed"
}
