import GRDB

/// Pages that removed jobs leave free are used again, and what is more than the next jobs will need goes back to the file
/// system: a part whenever nothing else waits to be written.
extension Writer {
    /// The free pages that stay, 4 MiB.
    private static let mostSpare = 1_024
    /// The pages that one transaction gives back.
    private static let portion = 256

    /// Gives a part of the free pages back; false where there is nothing more to do.
    ///
    /// It begins only where as many are free again as stay, as each page that goes is one more to write.
    func releasePages() throws -> Bool {
        let free = try freePages()
        guard free > (hasReleased ? 1 : 2) * Self.mostSpare else {
            mayHaveFreePages = false
            return false
        }
        try commit { try statement("PRAGMA incremental_vacuum(\(Self.portion))").run() }
        hasReleased = true
        // Where nothing changes, it never will.
        return try freePages() < free
    }

    private func freePages() throws -> Int {
        try statement("PRAGMA freelist_count").row { Int($0.integer(0)) } ?? 0
    }
}
