import Glibc
import Testing

/// Events in directories since this object was made, by name, caused by any process: inotify(7).
final class FileEvents {
    private let descriptor: FileDescriptor
    private var events: [(mask: UInt32, name: String)] = []

    /// Several directories at once: the system joins events that are alike and follow each other.
    init(in paths: [String]) throws {
        let opened = Inheritance.none { [inotify_init()] }[0]
        descriptor = FileDescriptor(number: opened)
        try #require(opened >= 0 && fcntl(opened, F_SETFL, O_NONBLOCK) == 0)
        // All kinds, so that two equal events have others between them.
        for path in paths { try #require(inotify_add_watch(opened, path, 0xFFF) >= 0, "\(path)") }
    }

    deinit { descriptor.close() }

    /// The names that were opened so far, for any purpose, in order, once per opening.
    func opened() -> [String] {
        while let bytes = descriptor.read(), !bytes.isEmpty {
            var rest = bytes[...]
            // Four numbers, the last of them the length of the name, which ends with NULs.
            while rest.count >= 16 {
                let numbers = rest.prefix(16).withUnsafeBytes { bytes in
                    (0..<4).map { bytes.loadUnaligned(fromByteOffset: $0 * 4, as: UInt32.self) }
                }
                let name = rest.dropFirst(16).prefix(Int(numbers[3])).prefix { $0 != 0 }
                events.append((numbers[1], String(decoding: name, as: UTF8.self)))
                rest = rest.dropFirst(16 + Int(numbers[3]))
            }
        }
        return events.filter { $0.mask & 0x20 != 0 && !$0.name.isEmpty }.map(\.name)
    }
}
