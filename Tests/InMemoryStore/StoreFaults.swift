import JobModel

/// What goes wrong in a store.
struct StoreFaults {
    enum Commit {
        case fails
        /// Its fate is unknown: nothing of the round happened, or all of it shows after a kill.
        case isUnknown
    }

    /// How the next round ends that has written something.
    var commit: Commit?
    /// Calls of transactions until one fails: any call, as one that writes reads too.
    var callsLeft: Int?
    /// There is no room: jobs cannot be inserted, and all else works.
    var isFull = false
    /// Jobs whose rows are damaged: each counts as none.
    var damaged: Set<JobID> = []
    /// Jobs whose rows the disk does not give back: reading one fails, each time.
    var unreadable: Set<JobID> = []
}
