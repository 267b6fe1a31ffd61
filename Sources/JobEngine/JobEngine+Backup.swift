import DataSources
import JobCore
package import JobModel
import JobStore
import Synchronization
package import SystemPackage

/// A copy of the state, of one moment, which goes when nobody has it any more, or is given up.
package final class StateBackup: Sendable {
    package enum Failure: Error, Equatable {
        /// Nobody read of it for long, and another one was asked for.
        case givenUp
        case unreadable(Errno)
    }

    private struct State {
        /// Nil once it was given up.
        var backup: StoreBackup?
        /// Pieces that are being read.
        var reads = 0
        /// When it was made, or a piece of it was read last.
        var lastRead: Int64
    }

    /// How long nobody may read of it where another one is wanted: 60 s. It takes room on the disk meanwhile.
    package static let longestPause: Int64 = 60_000_000_000

    /// Bytes of the whole.
    package let size: Int
    private let state: Mutex<State>

    fileprivate init(_ backup: StoreBackup, at now: Int64) {
        size = backup.size
        state = Mutex(State(backup: backup, lastRead: now))
    }

    /// Lets another one be made, though this one may still be read.
    package func end() { state.withLock(\.backup)?.end() }

    /// Gives it up where nobody has read of it for long.
    fileprivate func giveUpIfUnread(at now: Int64) {
        let backup: StoreBackup? = state.withLock { state in
            guard state.reads == 0, now.saturatingSubtracting(state.lastRead) >= Self.longestPause else { return nil }
            defer { state.backup = nil }
            return state.backup
        }
        backup?.end()
    }

    fileprivate func beginRead() throws(Failure) -> StoreBackup {
        let backup = state.withLock { state in
            if state.backup != nil { state.reads += 1 }
            return state.backup
        }
        guard let backup else { throw .givenUp }
        return backup
    }

    fileprivate func endRead(at now: Int64) {
        state.withLock { state in
            state.reads -= 1
            state.lastRead = now
        }
    }
}

/// The copy of the state that was made last.
struct LatestBackup {
    weak var backup: StateBackup?
}

extension JobEngine {
    /// Copies the state while jobs run. There is one copy at a time.
    package nonisolated func backUp() async throws(StoreError) -> StateBackup {
        latestBackup.withLock(\.backup)?.giveUpIfUnread(at: clock.now().monotonic)
        let backup = StateBackup(try await store.backUp(), at: clock.now().monotonic)
        latestBackup.withLock { $0.backup = backup }
        return backup
    }

    /// A part of a backup, for `owner`.
    package nonisolated func read(
        _ backup: StateBackup, offset: Int, length: Int, for owner: UInt32
    ) async throws(StateBackup.Failure) -> ResultPart {
        let store = try backup.beginRead()
        defer { backup.endRead(at: clock.now().monotonic) }
        do throws(Errno) {
            return try await library.blocking(for: owner) { () throws(Errno) in
                try store.read(offset: offset, length: length)
            }
        } catch {
            throw .unreadable(error)
        }
    }
}
