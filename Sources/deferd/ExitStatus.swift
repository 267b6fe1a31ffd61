/// What the daemon's exit code tells, by sysexits.h.
enum ExitStatus: Int32 {
    case ok = 0
    case usage = 64
    /// The database is damaged, or of a newer version.
    case badData = 65
    /// Another daemon has the state directory or the socket.
    case unavailable = 69
    case software = 70
    /// What keeps it from starting may pass: a full disk, or one that fails.
    case tryAgain = 75
    case configuration = 78
}
