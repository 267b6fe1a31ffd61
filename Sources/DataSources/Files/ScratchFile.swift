import SystemPackage
import Glibc
import JobModel
import Synchronization

/// A file that is being written and must vanish where the transfer does not reach its end.
///
/// States: `absent`, `present` under a name, `kept`, `removed`; the last two are terminal. ``remove()`` may come from
/// any thread at any time and is done when it returns: no name is made or changed after it.
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
    }

    private let state = Mutex(State())
    private let files: FileOperations
    let directory: OpenDirectory

    init(in directory: OpenDirectory, files: FileOperations) {
        self.directory = directory
        self.files = files
    }

    deinit {
        let descriptor = state.withLock { $0.descriptor }
        if descriptor >= 0 { files.close(descriptor) }
    }

    /// The open file; only after ``open(_:flags:mode:)``.
    var descriptor: Int32 { state.withLock { $0.descriptor } }

    /// Opens or makes the file `name`; an earlier one of this object is closed. Throws EEXIST where `accepts` refuses what was
    /// opened, which then stays as it was.
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

    /// Makes the file `name`. Where there is one already, it is unlinked if `isAbandoned`, else this throws EEXIST.
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
        let result: Result<Int32, Errno> = state.withLock { state in
            Result { () throws(Errno) in
                switch state.phase {
                case .absent, .present: break
                case .kept, .removed: throw Errno.canceled
                }
                let opened = try open()
                let earlier = state.descriptor
                state.descriptor = opened
                state.phase = .present(name: name)
                return earlier
            }
        }
        let earlier = try result.get()
        if earlier >= 0 { files.close(earlier) }
    }

    /// Whether the file that is open is the one that has the name: who may write to the directory can give the name to
    /// another at any time.
    private func isOpen(_ descriptor: Int32, under name: String) throws(Errno) -> Bool {
        try files.status(directory.descriptor, name).identity == files.statusOfOpen(descriptor).identity
    }

    /// Gives the file its final name. Throws ESTALE where another file had its name and got the new one.
    func rename(to newName: String, replacing: Bool) throws(Errno) {
        let result: Result<Void, Errno> = state.withLock { state in
            Result { () throws(Errno) in
                guard case .present(let name) = state.phase else { throw Errno.canceled }
                if replacing {
                    try files.rename(directory.descriptor, name, newName)
                } else {
                    try files.renameUnlessExists(directory.descriptor, name, newName)
                }
                state.phase = .present(name: newName)
                do throws(Errno) {
                    if try isOpen(state.descriptor, under: newName) { return }
                } catch  where error == .noSuchFileOrDirectory {}
                throw Errno.staleNFSFileHandle
            }
        }
        try result.get()
    }

    /// Keeps the file; false where it was kept or removed before.
    @discardableResult
    func keep() -> Bool {
        state.withLock { state in
            switch state.phase {
            case .absent, .present:
                state.phase = .kept
                return true
            case .kept, .removed: return false
            }
        }
    }

    /// Unlinks the file, or keeps it from being made later; false where it was kept or removed before.
    @discardableResult
    func remove() -> Bool {
        state.withLock { state in
            switch state.phase {
            case .present(let name):
                // Whatever keeps it from being unlinked, nothing more can be done about it here.
                if (try? isOpen(state.descriptor, under: name)) == true {
                    try? files.unlink(directory.descriptor, name)
                }
                state.phase = .removed
                return true
            case .absent:
                state.phase = .removed
                return true
            case .kept, .removed: return false
            }
        }
    }
}
