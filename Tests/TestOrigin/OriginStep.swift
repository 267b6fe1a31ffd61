/// The next step of a ``ScriptedOrigin`` on a connection.
package enum OriginStep: Sendable {
    case send([UInt8])
    /// That many bytes of a pattern, without keeping them in memory.
    case stream(Int)
    /// Nothing until the gate is open.
    case wait(OriginGate)
    /// Says that all before has been sent.
    case tell(AsyncStream<Void>.Continuation)
    /// Stops reading: later input from the client stays in the socket.
    case stopReading
    /// What a test does with the connection; the script goes on at the exchange's end.
    case lead(@Sendable (OriginExchange) -> Void)
    /// Nothing more until the client goes away.
    case hold
    /// Ends the connection in order.
    case close
    /// Breaks the connection off, so that the client sees a reset.
    case reset

    package static func send(_ text: String) -> OriginStep { .send(Array(text.utf8)) }

    /// Status line and header fields.
    package static func head(_ status: String, _ fields: [(name: String, value: String)] = []) -> OriginStep {
        .send("HTTP/1.1 \(status)\r\n" + fields.map { "\($0.name): \($0.value)\r\n" }.joined() + "\r\n")
    }
}
