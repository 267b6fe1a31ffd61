import Foundation
import Glibc
import Synchronization
import Testing

/// A terminal whose other side the test holds.
final class PseudoTerminal: Sendable {
    /// The path that the program opens.
    let slave: String
    private let master: FileDescriptor
    /// Kept open, so that the screen outlives a program that ends at once.
    private let keeper: FileDescriptor
    private let pieces = Mailbox<String>()
    private let text = Mutex("")

    /// All output to the terminal so far, including control sequences.
    var screen: String { text.withLock(\.self) }

    init(rows: UInt16 = 24, columns: UInt16 = 80) throws {
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        let ends = Inheritance.none { () -> [Int32]? in
            var (master, slave): (Int32, Int32) = (-1, -1)
            return openpty(&master, &slave, nil, nil, &size) == 0 ? [master, slave] : nil
        }
        try #require(ends.count == 2, "no terminal: \(String(cString: strerror(errno)))")
        master = FileDescriptor(number: ends[0])
        keeper = FileDescriptor(number: ends[1])
        var name = [CChar](repeating: 0, count: 128)
        try #require(ttyname_r(ends[1], &name, name.count) == 0)
        slave = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        Thread.detachNewThread { [master, pieces, weak self] in
            while let bytes = master.read() {
                let piece = String(decoding: bytes, as: UTF8.self)
                self?.text.withLock { $0 += piece }
                pieces.put(piece)
            }
            master.close()
            pieces.close()
        }
    }

    /// Types keys; Ctrl-C is `\u{3}`.
    func type(_ keys: String) { master.write(Array(keys.utf8)) }

    /// Waits until the screen has shown `text`.
    func shows(_ text: String) async throws {
        while !screen.contains(text) {
            guard try await pieces.next("\"\(text)\" on the screen, which shows: \(screen)") != nil else { return }
        }
    }

    /// Lets the reading end.
    func close() { keeper.close() }
}
