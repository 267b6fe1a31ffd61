import SystemPackage
import Glibc
import JobModel
import Synchronization

/// A file that is being written and must vanish where the transfer does not reach its end.
///
/// It is wanted until it is `kept` or `removed`, which are terminal. What opens, renames or unlinks blocks, one after the other,
/// and all else does not, however long a file system takes. ``remove()`` may come from any thread at any time and is done
/// when it returns: no name is made or changed after it.
final class ScratchFile: Sendable {
    private enum Phase {
        case wanted
        case kept
        case removed
    }

    private struct State {
        var phase = Phase.wanted
        /// Nil before it is made.
        var name: String?
        var descriptor: Int32 = -1
    }

    private let state = Mutex(State())
    /// Held while names change. Taken only on a thread for files, or to remove the file.
    private let operations = Mutex(())
    private let files: FileOperations
    /// Where it is closed; the thread that gives it up last may be anybody's.
    private let queue: FileQueue
    private let directory: OpenDirectory

    init(in directory: OpenDirectory, files: FileOperations, queue: FileQueue) {
        self.directory = directory
        self.files = files
        self.queue = queue
    }

    deinit {
        let (files, descriptor) = (files, descriptor)
        if descriptor >= 0 { queue.start { files.close(descriptor) } }
    }

    /// The open file; -1 before it is made or opened.
    var descriptor: Int32 { state.withLock(\.descriptor) }

    /// Opens the file `name`. Throws EEXIST where `accepts` refuses what was opened, which then stays as it was. Blocks.
    func open(_ name: String, accepts: (FileOperations.Status) -> Bool) throws(Errno) {
        try become(name) { () throws(Errno) in
            let opened = try files.openBeneath(
                directory.descriptor, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0)
            do throws(Errno) {
                guard try accepts(files.statusOfOpen(opened)) else { throw Errno.fileExists }
                return opened
            } catch {
                files.close(opened)
                throw error
            }
        }
    }

    /// Makes the file `name`. Where there is one already, it is unlinked if `isAbandoned`, else this throws EEXIST. Blocks.
    func make(
        _ name: String, mode: UInt32,
        unlessExists isAbandoned: (_ directory: Int32, _ name: String) throws(Errno) -> Bool
    ) throws(Errno) {
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
        try become(name) { () throws(Errno) in
            do throws(Errno) {
                return try files.openBeneath(directory.descriptor, name, flags, mode)
            } catch  where error == .fileExists {
                guard try isAbandoned(directory.descriptor, name) else { throw error }
                do throws(Errno) {
                    try files.unlink(directory.descriptor, name)
                } catch  where error == .noSuchFileOrDirectory {}
                return try files.openBeneath(directory.descriptor, name, flags, mode)
            }
        }
    }

    /// Makes what `open` opens this file; an earlier one of this object is closed.
    private func become(_ name: String, _ open: () throws(Errno) -> Int32) throws(Errno) {
        let earlier = try operating { (state) throws(Errno) in
            let opened = try open()
            // A concurrent removal waits for this.
            self.state.withLock { ($0.name, $0.descriptor) = (name, opened) }
            return state.descriptor
        }
        if earlier >= 0 { files.close(earlier) }
    }

    /// Runs `body` while nothing else changes names; throws where the file is not wanted any more.
    private func operating<Value: Sendable>(_ body: (State) throws(Errno) -> Value) throws(Errno) -> Value {
        try operations.withLock { _ throws(Errno) in
            let state = state.withLock(\.self)
            guard state.phase == .wanted else { throw Errno.canceled }
            return try body(state)
        }
    }

    /// Whether the file that is open is the one that has the name: who may write to the directory can give the name to
    /// another at any time.
    private func isOpen(_ descriptor: Int32, under name: String) throws(Errno) -> Bool {
        try files.status(directory.descriptor, name).identity == files.statusOfOpen(descriptor).identity
    }

    /// Gives the file its final name. Throws ESTALE where another file had its name and got the new one. Blocks.
    func rename(to newName: String, replacing: Bool) throws(Errno) {
        try operating { (state) throws(Errno) in
            guard let name = state.name else { throw Errno.canceled }
            if replacing {
                try files.rename(directory.descriptor, name, newName)
            } else {
                try files.renameUnlessExists(directory.descriptor, name, newName)
            }
            self.state.withLock { $0.name = newName }
            do throws(Errno) {
                if try isOpen(state.descriptor, under: newName) { return }
            } catch  where error == .noSuchFileOrDirectory {}
            throw Errno.staleNFSFileHandle
        }
    }

    /// Keeps the file; false where it was kept or removed before.
    func keep() -> Bool { leave(.kept) }

    /// Unlinks the file, or keeps it from being made later; false where it was kept or removed before. Blocks.
    func remove() -> Bool {
        // An operation that waits for its turn does nothing any more.
        let isFirst = leave(.removed)
        return operations.withLock { _ in
            let state = state.withLock(\.self)
            // Whatever keeps it from being unlinked, nothing more can be done about it here.
            if isFirst, let name = state.name, (try? isOpen(state.descriptor, under: name)) == true {
                try? files.unlink(directory.descriptor, name)
            }
            return isFirst
        }
    }

    private func leave(_ phase: Phase) -> Bool {
        state.withLock { state in
            guard state.phase == .wanted else { return false }
            state.phase = phase
            return true
        }
    }
}
