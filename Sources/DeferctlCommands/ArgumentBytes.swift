import Glibc

/// The check that all arguments are UTF-8: Swift's strings would replace other bytes, and so name another file.
enum ArgumentBytes {
    static func refuseOthers() throws(CommandFailure) {
        let arguments = UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)).dropFirst()
        for case let argument? in arguments where String(validatingCString: argument) == nil {
            throw CommandFailure.notUTF8(
                "The argument", argument,
                "rename what it names, or have a shell find it, such as: deferctl run sh -c 'cat caf?'")
        }
    }
}

extension CommandFailure {
    static func notUTF8(
        _ subject: String, _ text: UnsafePointer<CChar>, _ advice: String
    ) -> CommandFailure {
        let bytes = UnsafeBufferPointer(start: text, count: strlen(text)).map(UInt8.init(bitPattern:))
        return CommandFailure(
            .badData, "\(subject) \"\(String(escaping: bytes))\" is not UTF-8 and cannot be sent; \(advice)")
    }
}

extension String {
    /// The text of bytes that are not UTF-8: all but ASCII is escaped.
    init(escaping bytes: some Sequence<UInt8>) {
        self = bytes.map { byte in
            byte < 0x80 ? String(Unicode.Scalar(byte)) : "\\x" + String(byte, radix: 16)
        }.joined()
    }
}
