import Dispatch
import Glibc

/// What comes from the terminal of a full screen: keys, and signals.
enum ScreenEvent: Sendable, Equatable {
    case key(UInt8)
    case signal(Int32)

    /// The signals that are told as events while ``stream(keys:_:)`` runs.
    static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT]

    /// Runs `body` with the events; at most 64 wait for it, the newest.
    static func stream<Value>(keys: Int32?, _ body: (AsyncStream<ScreenEvent>) async throws -> Value) async throws
        -> Value
    {
        let (events, continuation) = AsyncStream.makeStream(of: ScreenEvent.self, bufferingPolicy: .bufferingNewest(64))
        let sources = signals.map { number in
            // A signal source sees what the process ignores; the two of job control stay out of the default's way so.
            let handler = Glibc.signal(number, number == SIGCONT || number == SIGWINCH ? SIG_DFL : SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { continuation.yield(.signal(number)) }
            source.resume()
            return (source, number, handler)
        }
        var reader: (any DispatchSourceRead)?
        if let keys {
            let source = DispatchSource.makeReadSource(fileDescriptor: keys)
            source.setEventHandler {
                var bytes = [UInt8](repeating: 0, count: 64)
                let count = read(keys, &bytes, bytes.count)
                if count > 0 { for byte in bytes[..<count] { continuation.yield(.key(byte)) } }
                // The terminal has hung up, which ends the screen, as SIGHUP does where it comes.
                if count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN) {
                    continuation.yield(.signal(SIGHUP))
                }
            }
            source.resume()
            reader = source
        }
        defer {
            reader?.cancel()
            for (source, number, handler) in sources {
                source.cancel()
                Glibc.signal(number, handler)
            }
            continuation.finish()
        }
        return try await body(events)
    }
}
