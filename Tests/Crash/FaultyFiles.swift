import SystemPackage
import DataSources
import Glibc
import Synchronization
import TestSupport

/// The real file system, but that opening, writing, syncing and renaming fail now and then.
final class FaultyFiles: Sendable {
    private struct State {
        var random: SeededGenerator
        /// One in this many calls fails; 0 for none.
        var oneIn = 0
        var failures: [String: Int] = [:]
    }

    private let state: Mutex<State>

    init(seed: UInt64) {
        state = Mutex(State(random: SeededGenerator(seed: seed)))
    }

    /// Makes one in this many calls fail from now on; 0 for none.
    func fail(oneIn calls: Int) {
        state.withLock { $0.oneIn = calls }
    }

    /// The number of failed calls so far, by operation.
    var failures: [String: Int] { state.withLock(\.failures) }

    private func pass(_ call: String) throws(Errno) {
        let code = state.withLock { state -> Int32? in
            guard state.oneIn > 0, Int.random(in: 0..<state.oneIn, using: &state.random) == 0 else { return nil }
            state.failures[call, default: 0] += 1
            return [EIO, ENOSPC, EROFS, EDQUOT].randomElement(using: &state.random)
        }
        if let code { throw Errno(rawValue: code) }
    }

    var operations: FileOperations {
        let real = FileOperations.real
        var files = real
        files.openDirectory = { (path) throws(Errno) in
            try self.pass("open")
            return try real.openDirectory(path)
        }
        files.openFromRoot = { (path, flags) throws(Errno) in
            try self.pass("open")
            return try real.openFromRoot(path, flags)
        }
        files.openBeneath = { (directory, path, flags, mode) throws(Errno) in
            try self.pass("open")
            return try real.openBeneath(directory, path, flags, mode)
        }
        files.writeAt = { (file, offset, bytes) throws(Errno) in
            do throws(Errno) { try self.pass("write") } catch {
                // A full disk accepts the bytes that still fit.
                try real.writeAt(file, offset, UnsafeRawBufferPointer(rebasing: bytes.prefix(bytes.count / 2)))
                throw error
            }
            try real.writeAt(file, offset, bytes)
        }
        files.sync = { (file) throws(Errno) in
            try self.pass("fsync")
            try real.sync(file)
        }
        files.rename = { (directory, name, newName, replacing) throws(Errno) in
            try self.pass("rename")
            try real.rename(directory, name, newName, replacing)
        }
        return files
    }
}
