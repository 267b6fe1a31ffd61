import DataSources
package import JobModel
import JobStore
package import SystemPackage

/// A copy of the state, of one moment, which goes when nobody has it any more.
package struct StateBackup: Sendable {
    fileprivate let backup: StoreBackup

    /// Bytes of the whole.
    package var size: Int { backup.size }

    /// Lets another one be made, though this one may still be read.
    package func end() { backup.end() }
}

extension JobEngine {
    /// Copies the state while jobs run.
    package nonisolated func backUp() async throws(StoreError) -> StateBackup {
        StateBackup(backup: try await store.backUp())
    }

    /// A part of a backup, for `owner`.
    package nonisolated func read(
        _ backup: StateBackup, offset: Int, length: Int, for owner: UInt32
    ) async throws(Errno) -> ResultPart {
        try await library.blocking(for: owner) { () throws(Errno) in
            try backup.backup.read(offset: offset, length: length)
        }
    }
}
