import Glibc
import JobModel
import NIOCore
import Synchronization
import SystemPackage

/// Writes the output of one attempt of a program to its log.
///
/// Output without room, on the disk or within the quota of the user, is dropped and counted. The file is made with the first
/// byte. It is not synced: a power failure may take its end.
final class OutputWriter: Sendable {
    /// The last bytes of both streams, which an error shows.
    static let shownTail = 4 << 10

    private struct State {
        var head: OutputLog.Head
        var block = OutputLog.BlockHead()
        /// The stream of the last byte of the block.
        var stream: OutputLog.Stream?
        var file: OpenFile?
        var leases: [Lease] = []
        /// The bytes of output so far.
        var size: Int64 = 0
        var tail: [UInt8] = []
        var hasFailed = false
    }

    private let transfer: Transfer
    private let state: Mutex<State>

    init(limit: Int, _ transfer: Transfer) {
        self.transfer = transfer
        state = Mutex(State(head: OutputLog.Head(limit: limit)))
    }

    /// The bytes that the log takes on the disk.
    var space: Int64 { state.withLock { Int64($0.leases.count) * $0.head.slotSize } }

    /// The bytes of output so far, of both streams.
    var size: Int64 { state.withLock(\.size) }

    /// The end of the output, as text.
    var tail: String {
        let tail = state.withLock(\.tail)
        // It may begin in the middle of a character.
        let start = tail.count < Self.shownTail ? 0 : tail.prefix(3).prefix { $0 & 0xC0 == 0x80 }.count
        return String(decoding: tail[start...], as: UTF8.self)
    }

    /// A reader of the log; nil if nothing was kept.
    var reader: OutputReader? { state.withLock(\.file).map { OutputReader($0.descriptor, transfer.files) } }

    /// Appends output. Blocks.
    func append(_ chunks: [PipeReader.Chunk]) {
        state.withLock { state in
            for chunk in chunks {
                guard let stream = OutputLog.Stream(rawValue: chunk.pipe) else { continue }
                chunk.bytes.withUnsafeReadableBytes { append($0, stream, &state) }
            }
        }
    }

    private func append(_ bytes: UnsafeRawBufferPointer, _ stream: OutputLog.Stream, _ state: inout State) {
        state.tail += bytes.suffix(Self.shownTail)
        if state.tail.count > Self.shownTail { state.tail.removeFirst(state.tail.count - Self.shownTail) }
        var rest = bytes[...]
        while !rest.isEmpty {
            do throws(Errno) {
                guard !state.hasFailed, try prepare(for: stream, &state) else { break }
                let room = state.head.capacity(of: state.head.blocks - 1) - Int(state.block.size)
                let part = UnsafeRawBufferPointer(rebasing: rest.prefix(room))
                try write(part, at: dataPosition(state) + Int64(state.block.size), state)
                state.block.size += UInt32(part.count)
                try writeBlockHead(state)
                state.size += Int64(part.count)
                rest = rest.dropFirst(part.count)
            } catch {
                state.hasFailed = true
            }
        }
        guard !rest.isEmpty else { return }
        state.size += Int64(rest.count)
        state.head.dropped += UInt64(rest.count)
        // On a broken disk, the count is lost too.
        if state.file != nil { try? writeHead(state) }
    }

    /// Makes room in the present block or in a new one for a byte of `stream`; false if there is none.
    private func prepare(for stream: OutputLog.Stream, _ state: inout State) throws(Errno) -> Bool {
        let isFull = state.block.size == 0 || Int(state.block.size) == state.head.capacity(of: state.head.blocks - 1)
        let isMarked = stream == state.stream
        if state.head.blocks == 0 || isFull || !isMarked && Int(state.block.marks) == state.head.marks {
            guard try beginBlock(&state) else { return false }
        } else if isMarked {
            return true
        }
        let mark = OutputLog.mark(stream, at: state.block.size)
        let position =
            dataPosition(state) - Int64((state.head.marks - Int(state.block.marks)) * MemoryLayout<UInt32>.size)
        try withUnsafeBytes(of: mark) { (bytes) throws(Errno) in try write(bytes, at: position, state) }
        state.block.marks += 1
        state.stream = stream
        return true
    }

    private func beginBlock(_ state: inout State) throws(Errno) -> Bool {
        let next = state.head.blocks
        if next < UInt64(state.head.slots), try !hasRoomForSlot(&state) {
            // The slots in use are all that there will be.
            state.head.slots = UInt32(next)
            state.head.firstSlots = min(state.head.firstSlots, state.head.slots)
        }
        guard next < UInt64(state.head.firstSlots) || state.head.slots > state.head.firstSlots else { return false }
        let last = state.block
        state.block = OutputLog.BlockHead(offset: UInt64(state.size))
        state.stream = nil
        state.head.blocks += 1
        do throws(Errno) {
            // Readers look for the block once the file's head counts it.
            try writeBlockHead(state)
            try writeHead(state)
        } catch {
            state.head.blocks = next
            state.block = last
            throw error
        }
        return true
    }

    /// Whether the user's quota and the disk have room for another slot.
    private func hasRoomForSlot(_ state: inout State) throws(Errno) -> Bool {
        let (context, files) = (transfer.context, transfer.files)
        if state.file == nil {
            let name = String(context.logPath.split(separator: "/").last ?? "")
            let above = String(context.logPath.dropLast(name.utf8.count))
            let directory =
                if let open = context.bodyDirectory { open } else { OpenFile(try files.openDirectory(above), files) }
            let file = try files.openBeneath(
                directory.descriptor, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
            state.file = OpenFile(file, files, closedOn: transfer.ownFiles)
        }
        let size = state.head.slotSize
        let minimum = Int64(transfer.settings.downloads.minimumFree)
        if let free = files.freeBytes(state.file?.descriptor ?? -1), free.saturatingSubtracting(size) < minimum {
            return false
        }
        guard
            let lease = try? transfer.shared.spills.lease(
                size, of: transfer.owner, within: context.roomForBody, for: "output")
        else { return false }
        state.leases.append(lease)
        return true
    }

    // MARK: - Writing

    private func dataPosition(_ state: borrowing State) -> Int64 {
        state.head.dataPosition(of: state.head.slot(of: state.head.blocks - 1))
    }

    private func writeHead(_ state: borrowing State) throws(Errno) {
        try withUnsafeBytes(of: state.head) { (bytes) throws(Errno) in try write(bytes, at: 0, state) }
    }

    private func writeBlockHead(_ state: borrowing State) throws(Errno) {
        let position = state.head.position(of: state.head.slot(of: state.head.blocks - 1))
        try withUnsafeBytes(of: state.block) { (bytes) throws(Errno) in try write(bytes, at: position, state) }
    }

    private func write(_ bytes: UnsafeRawBufferPointer, at position: Int64, _ state: borrowing State) throws(Errno) {
        try transfer.files.writeAt(state.file?.descriptor ?? -1, position, bytes)
    }
}
