import SystemPackage
import Glibc
import JobModel
import Synchronization

/// A file that is being written and must vanish where the transfer does not reach its end.
///
/// States: `absent`, `present` under a name, `kept`, `removed`; the last two are terminal. What opens, renames or unlinks
/// blocks, one after the other, and all else does not, however long a file system takes. ``remove()`` may come from any
/// thread at any time and is done when it returns: no name is made or changed after it.
final class ScratchFile: Sendable {
    private enum Phase {
        case absent
        case present(name: String)
        case kept
        case removed
    }

    private struct State {
        var phase = Phase.absent
        var descriptor: Int32 = -1
        /// Whether it is to be removed, which may have to wait for an operation.
        var isUnwanted = false

        /// Throws where no name may be made or changed any more.
        func check() throws(Errno) {
            if isUnwanted { throw Errno.canceled }
            switch phase {
            case .absent, .present: break
            case .kept, .removed: throw Errno.canceled
            }
        }
    }

    private let state = Mutex(State())
    /// Held by whoever changes names. Never taken but on a thread for files.
    private let operations = Mutex(())
    private let files: FileOperations
    /// Where it is closed; the thread that gives it up last may be anybody's.
    private let queue: FileQueue?
    let directory: OpenDirectory

    init(in directory: OpenDirectory, files: FileOperations, queue: FileQueue? = nil) {
        self.directory = directory
        self.files = files
        self.queue = queue
    }

    deinit {
        let (files, descriptor) = (files, state.withLock { $0.descriptor })
        guard descriptor >= 0 else { return }
        if let queue { queue.start { files.close(descriptor) } } else { files.close(descriptor) }
    }

    /// The open file; only after ``open(_:flags:mode:)``.
    var descriptor: Int32 { state.withLock { $0.descriptor } }

    /// Opens or makes the file `name`; an earlier one of this object is closed. Throws EEXIST where `accepts` refuses what was
    /// opened, which then stays as it was. Blocks.
    func open(
        _ name: String, flags: Int32, mode: UInt32 = 0, accepts: (FileOperations.Status) -> Bool = { _ in true }
    ) throws(Errno) {
        try become(name) { () throws(Errno) in
            let opened = try files.openBeneath(directory.descriptor, name, flags, mode)
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

    /// Makes what `open` opens this file.
    private func become(_ name: String, _ open: () throws(Errno) -> Int32) throws(Errno) {
        let earlier = try operating { () throws(Errno) in
            try read { (state) throws(Errno) in try state.check() }
            let opened = try open()
            // Whoever wants it removed meanwhile waits for this.
            return state.withLock { state in
                defer { (state.descriptor, state.phase) = (opened, .present(name: name)) }
                return state.descriptor
            }
        }
        if earlier >= 0 { files.close(earlier) }
    }

    private func operating<Value: Sendable>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value {
        let result: Result<Value, Errno> = operations.withLock { _ in Result { () throws(Errno) in try body() } }
        return try result.get()
    }

    private func read<Value: Sendable>(_ body: (borrowing State) throws(Errno) -> Value) throws(Errno) -> Value {
        let result: Result<Value, Errno> = state.withLock { state in
            Result { () throws(Errno) in try body(state) }
        }
        return try result.get()
    }

    /// Whether the file that is open is the one that has the name: who may write to the directory can give the name to
    /// another at any time.
    private func isOpen(_ descriptor: Int32, under name: String) throws(Errno) -> Bool {
        try files.status(directory.descriptor, name).identity == files.statusOfOpen(descriptor).identity
    }

    /// Gives the file its final name. Throws ESTALE where another file had its name and got the new one. Blocks.
    func rename(to newName: String, replacing: Bool) throws(Errno) {
        try operating { () throws(Errno) in
            let (name, descriptor) = try read { (state) throws(Errno) in
                try state.check()
                guard case .present(let name) = state.phase else { throw Errno.canceled }
                return (name, state.descriptor)
            }
            if replacing {
                try files.rename(directory.descriptor, name, newName)
            } else {
                try files.renameUnlessExists(directory.descriptor, name, newName)
            }
            state.withLock { $0.phase = .present(name: newName) }
            do throws(Errno) {
                if try isOpen(descriptor, under: newName) { return }
            } catch  where error == .noSuchFileOrDirectory {}
            throw Errno.staleNFSFileHandle
        }
    }

    /// Keeps the file; false where it was kept or removed before, or is about to be removed.
    @discardableResult
    func keep() -> Bool {
        state.withLock { state in
            guard !state.isUnwanted else { return false }
            switch state.phase {
            case .absent, .present:
                state.phase = .kept
                return true
            case .kept, .removed: return false
            }
        }
    }

    /// Unlinks the file, or keeps it from being made later; false where it was kept or removed before. Blocks.
    @discardableResult
    func remove() -> Bool {
        // An operation that waits for its turn does nothing any more.
        state.withLock { state in
            if case .kept = state.phase { return }
            state.isUnwanted = true
        }
        return operations.withLock { _ in
            let (phase, descriptor) = state.withLock { ($0.phase, $0.descriptor) }
            switch phase {
            case .present(let name):
                // Whatever keeps it from being unlinked, nothing more can be done about it here.
                if (try? isOpen(descriptor, under: name)) == true { try? files.unlink(directory.descriptor, name) }
            case .absent: break
            case .kept, .removed: return false
            }
            state.withLock { $0.phase = .removed }
            return true
        }
    }
}
