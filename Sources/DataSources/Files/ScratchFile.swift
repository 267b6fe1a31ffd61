import Glibc
import JobModel
import Synchronization
import SystemPackage

/// A file that is removed unless the transfer completes.
///
/// It is wanted until it is kept or removed. Operations that open, rename or unlink run one at a time and block; all
/// others return at once. ``remove()`` may be called on any thread: once it returns, no name is made or changed.
final class ScratchFile: Sendable {
    private struct State {
        var isWanted = true
        /// Nil before the file is made.
        var name: String?
        var file: OpenFile?
    }

    private let state = Mutex(State())
    /// Held while names change: on file threads, or to remove the file.
    private let operations = Mutex(())
    private let files: FileOperations
    private let queue: FileQueue
    private let directory: OpenDirectory

    init(in directory: OpenDirectory, _ files: FileOperations, _ queue: FileQueue) {
        self.directory = directory
        self.files = files
        self.queue = queue
    }

    /// The open file; -1 before it is made or opened.
    var descriptor: Int32 { state.withLock { $0.file?.descriptor ?? -1 } }

    /// Opens the file `name`; throws EEXIST if `accepts` refuses it. Blocks.
    func open(_ name: String, accepts: (FileOperations.Status) -> Bool) throws(Errno) {
        try become(name) { () throws(Errno) in
            let file = try open(name, O_RDWR | O_NOFOLLOW | O_NONBLOCK)
            guard try accepts(files.statusOfOpen(file.descriptor)) else { throw Errno.fileExists }
            return file
        }
    }

    /// Makes the file `name`. An existing one is unlinked if `isAbandoned` says so; otherwise this throws EEXIST.
    /// Blocks.
    func make(
        _ name: String, mode: UInt32,
        unlessExists isAbandoned: (_ directory: Int32, _ name: String) throws(Errno) -> Bool
    ) throws(Errno) {
        let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
        try become(name) { () throws(Errno) in
            do throws(Errno) {
                return try open(name, flags, mode)
            } catch  where error == .fileExists {
                guard try isAbandoned(directory.descriptor, name) else { throw error }
                do throws(Errno) {
                    try files.unlink(directory.descriptor, name)
                } catch  where error == .noSuchFileOrDirectory {}
                return try open(name, flags, mode)
            }
        }
    }

    private func open(_ name: String, _ flags: Int32, _ mode: UInt32 = 0) throws(Errno) -> OpenFile {
        OpenFile(try files.openBeneath(directory.descriptor, name, flags, mode), files, closedOn: queue)
    }

    private func become(_ name: String, _ open: () throws(Errno) -> OpenFile) throws(Errno) {
        try operating { _ throws(Errno) in
            let file = try open()
            state.withLock { ($0.name, $0.file) = (name, file) }
        }
    }

    /// Runs `body` while no other operation changes names; throws if the file is no longer wanted.
    private func operating(_ body: (State) throws(Errno) -> Void) throws(Errno) {
        try operations.withLock { _ throws(Errno) in
            let state = state.withLock(\.self)
            guard state.isWanted else { throw Errno.canceled }
            try body(state)
        }
    }

    /// Whether `name` is the open file: other writers to the directory can replace it at any time.
    private func isOpen(_ file: OpenFile, under name: String) throws(Errno) -> Bool {
        try files.status(directory.descriptor, name).identity == files.statusOfOpen(file.descriptor).identity
    }

    /// Gives the file its final name; throws ESTALE if another file had the old name and got the new one. Blocks.
    func rename(to newName: String, replacing: Bool) throws(Errno) {
        try operating { (state) throws(Errno) in
            guard let name = state.name, let file = state.file else { throw Errno.canceled }
            if replacing {
                try files.rename(directory.descriptor, name, newName)
            } else {
                try files.renameUnlessExists(directory.descriptor, name, newName)
            }
            self.state.withLock { $0.name = newName }
            do throws(Errno) {
                if try isOpen(file, under: newName) { return }
            } catch  where error == .noSuchFileOrDirectory {}
            throw Errno.staleNFSFileHandle
        }
    }

    /// Keeps the file; false if it was already kept or removed.
    func keep() -> Bool { leave() }

    /// Unlinks the file and prevents it from being made later; false if it was already kept or removed. Blocks.
    func remove() -> Bool {
        let isFirst = leave()
        return operations.withLock { _ in
            let state = state.withLock(\.self)
            if isFirst, let name = state.name, let file = state.file, (try? isOpen(file, under: name)) == true {
                try? files.unlink(directory.descriptor, name)
            }
            return isFirst
        }
    }

    /// Ends the time in which the file is wanted; false if it had ended.
    private func leave() -> Bool {
        state.withLock { state in
            defer { state.isWanted = false }
            return state.isWanted
        }
    }
}
