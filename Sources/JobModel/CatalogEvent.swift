/// An event that an administrator may want to know about.
/// Log entries contain its name (`event`) and its journal number (`MESSAGE_ID`, see systemd/deferd.catalog).
package enum CatalogEvent: String, Sendable, CaseIterable {
    case serving, stopped
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
