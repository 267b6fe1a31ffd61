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

    /// Opens or makes the file `name`; an earlier one of this object is closed.
    func open(_ name: String, flags: Int32, mode: UInt32 = 0) throws(Errno) {
        try open(name, flags: flags, mode: mode, replacing: false)
    }

    /// Makes the file `name`, unlinking what is there under that name.
    func make(_ name: String, mode: UInt32) throws(Errno) {
        try open(name, flags: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: mode, replacing: true)
    }

    private func open(_ name: String, flags: Int32, mode: UInt32, replacing: Bool) throws(Errno) {
        let result: Result<Int32, Errno> = state.withLock { state in
            Result { () throws(Errno) in
                switch state.phase {
                case .absent, .present: break
                case .kept, .removed: throw Errno.canceled
                }
                do throws(Errno) {
                    if replacing { try files.unlink(directory.descriptor, name) }
                } catch  where error == .noSuchFileOrDirectory {}
                let opened = try files.openBeneath(directory.descriptor, name, flags, mode)
                let earlier = state.descriptor
                state.descriptor = opened
                state.phase = .present(name: name)
                return earlier
            }
        }
        let earlier = try result.get()
        if earlier >= 0 { files.close(earlier) }
    }

    /// Gives the file its final name.
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
                try? files.unlink(directory.descriptor, name)
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
