import JobCore
import JobEngine
import JobModel
import JobProtocol
import Synchronization

/// `server.backup`.
///
/// The daemon writes no file that a client names, as it has other rights than its administrators. The client reads the copy
/// and writes it with its own.
extension Connection {
    func serverBackup(_ call: Call) async throws {
        let params = try call.params(["offset", "length"])
        let offset = try params.integer("offset", in: 0...Int.max)
        let length = try params.integer("length", in: 0...Int.max)
        guard caller.isAdmin else {
            throw ProtocolError(.forbidden, "Only administrators may make a backup; ask one of them.")
        }
        guard engine.settings.store == .sqlite else {
            throw ProtocolError(
                .methodNotFound, "The jobs are in PostgreSQL; make backups of its database with pg_dump.")
        }
        guard let offset else {
            return call.succeed(["size": JSON(try await makeBackup().size)])
        }
        guard let backup = state.withLock(\.backup) else {
            throw ProtocolError(
                .notFound, "This connection has made no backup; call server.backup without an offset first.")
        }
        let piece = try resultPiece(call, length)
        do throws(StateBackup.Failure) {
            let part = try await engine.read(backup, offset: offset, length: piece, for: caller.uid)
            answer(call, part, at: offset)
        } catch .givenUp {
            throw ProtocolError(
                .notFound,
                "The backup was given up, as it was not read for \(StateBackup.longestPause / 1_000_000_000) seconds "
                    + "and another one was asked for; call server.backup without an offset to make one.")
        } catch .unreadable(let error) {
            throw ProtocolError(.storage, "The backup cannot be read: \(error); make another one.")
        }
    }

    private func makeBackup() async throws -> StateBackup {
        // The last one is closed outside of the lock, as that may take long.
        state.withLock { exchange(&$0.backup, with: nil) }?.end()
        do throws(StoreError) {
            let backup = try await engine.backUp()
            if isGone { backup.end() } else { state.withLock { $0.backup = backup } }
            return backup
        } catch {
            if error.code == .locked { throw ProtocolError.busy(error.message, retryAfter: 60) }
            throw error
        }
    }
}
