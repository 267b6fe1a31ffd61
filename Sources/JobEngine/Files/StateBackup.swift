import Dispatch
import Glibc
package import JobModel
import Synchronization
package import SystemPackage

/// A copy of the state, of one moment, in a file without a name: the kernel drops it with its last descriptor, however the
/// process ends.
package final class StateBackup: Sendable {
    package enum Failure: Error, Equatable {
        /// It was not read for long, and another one was asked for.
        case givenUp
        case unreadable(Errno)
    }

    private struct State: ~Copyable {
        /// Nil once it was given up, and no piece of it is being read.
        var file: FileDescriptor?
        /// Another one may be made.
        var isOver = false
        /// Pieces that are being read.
        var reads = 0
        /// When it was made, or a piece of it was read last.
        var lastRead: UInt64

        mutating func closeIfUnused() {
            guard isOver, reads == 0 else { return }
            try? file?.close()
            file = nil
        }

        deinit { try? file?.close() }
    }

    /// How long it may be left unread where another one is wanted: 60 s. It takes room on the disk meanwhile.
    package static let longestPause: UInt64 = 60_000_000_000

    /// Bytes of the whole.
    package let size: Int
    private let state: Mutex<State>

    /// Takes over the file `path`, which loses its name.
    init(takingOver path: String, at now: UInt64) throws(StoreError) {
        do {
            let file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .noFollow])
            unlink(path)
            state = Mutex(State(file: file, lastRead: now))
            size = Int(try file.seek(offset: 0, from: .end))
        } catch {
            throw StoreError(.read, "The backup \(path) cannot be read (\(error)); make another one.")
        }
    }

    /// Lets another one be made, though a piece of this one may still be read.
    package func end() {
        state.withLock { state in
            state.isOver = true
            state.closeIfUnused()
        }
    }

    /// Whether another one may be made, which ends this one where it was left unread for long.
    fileprivate func isOver(at now: UInt64) -> Bool {
        state.withLock { state in
            if state.reads == 0, now >= state.lastRead.addingReportingOverflow(Self.longestPause).partialValue {
                state.isOver = true
                state.closeIfUnused()
            }
            return state.isOver
        }
    }

    /// `length` bytes from `offset` on, as far as there are. Blocks.
    fileprivate func read(offset: Int, length: Int) throws(Failure) -> ResultPart {
        let file = state.withLock { state in
            if !state.isOver { state.reads += 1 }
            return state.isOver ? nil : state.file
        }
        guard let file else { throw .givenUp }
        defer {
            state.withLock { state in
                state.reads -= 1
                state.lastRead = DispatchTime.now().uptimeNanoseconds
                state.closeIfUnused()
            }
        }
        let start = min(max(0, offset), size)
        let length = min(max(0, length), size - start)
        do {
            let bytes = try [UInt8](unsafeUninitializedCapacity: length) { buffer, filled in
                while filled < length {
                    let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
                    let count = try file.read(fromAbsoluteOffset: Int64(start + filled), into: rest)
                    guard count > 0 else { throw Errno.ioError }
                    filled += count
                }
            }
            return ResultPart(bytes: bytes, size: size)
        } catch {
            throw .unreadable(error as? Errno ?? .ioError)
        }
    }
}

/// The one backup that there is at a time.
final class Backups: Sendable {
    private struct State {
        var isMaking = false
        weak var latest: StateBackup?
    }

    private let state = Mutex(State())
    /// Not one of the threads for files, as it takes long.
    private let queue = DispatchQueue(label: "deferd.backup", qos: .utility)

    fileprivate func make(
        at now: UInt64, _ copy: @escaping @Sendable () throws(StoreError) -> String
    ) async throws(StoreError) -> StateBackup {
        let mayBegin = state.withLock { state in
            guard !state.isMaking, state.latest?.isOver(at: now) ?? true else { return false }
            state.isMaking = true
            return true
        }
        guard mayBegin else { throw StoreError(.locked, "Another backup is being made; wait for that to end.") }
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<StateBackup, StoreError>, Never>) in
            queue.async {
                continuation.resume(
                    returning: Result { () throws(StoreError) in try StateBackup(takingOver: copy(), at: now) })
            }
        }
        state.withLock { state in
            state.isMaking = false
            state.latest = try? result.get()
        }
        return try result.get()
    }
}

extension Engine {
    /// Copies the state while jobs run. There is one copy at a time.
    package func backUp(
        at now: UInt64 = DispatchTime.now().uptimeNanoseconds
    ) async throws(StoreError) -> StateBackup {
        try await services.backups.make(at: now) { [services] () throws(StoreError) in
            // A file that the copied rows name may be another job's end away from being removed.
            services.blobs.hold()
            defer { services.blobs.release() }
            return try services.reader.copyState()
        }
    }

    /// A part of a backup, for `owner`.
    package func read(
        _ backup: StateBackup, offset: Int, length: Int, for owner: UInt32
    ) async throws(StateBackup.Failure) -> ResultPart {
        try await blocking(for: owner) { () throws(StateBackup.Failure) in
            try backup.read(offset: offset, length: length)
        }
    }
}
