/// How a transfer ends that is neither the network's nor the parser's error.
enum TransferError: Error, Equatable {
    /// It was broken off from here.
    case cancelled
    /// The server closed the connection.
    case closed
    /// The server was silent for too long.
    case idle
    /// The server moved fewer bytes than it must in that many seconds.
    case slow(bytes: Int, seconds: Double)
    /// The proxy did not connect, for a reason that is a clause.
    case proxy(String)
}
