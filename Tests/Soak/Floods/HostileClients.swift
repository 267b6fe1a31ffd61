import Foundation
import Glibc

/// Hostile clients of user 1, in a separate process with that user's id and its own descriptors.
///
/// The process is this program again (``HostileProcess``), which reports when it has begun, and its results when its
/// input ends.
struct HostileClients {
    enum Kind: String, CaseIterable {
        /// Calls, watches and long lines with unread answers.
        case unread
        /// Thousands of connections that send a byte a second and read nothing.
        case drip
        /// 10,000 connections tried and as many kept as are admitted; then one more after the other.
        case crowd
        /// Connections that close in the middle of a line, or before the answer to their submission.
        case vanish
        /// Jobs and trees of jobs that are cancelled as soon as they run, and again.
        case cancelStorm = "cancel storm"
        /// A million lines over a connection, without reading and, over another, with it.
        case pipeline
    }

    /// The connections of one user that are admitted of the 10,000.
    static let admitted = 5_000
    static let tried = 10_000

    /// The first argument of the program that is one.
    static let argument = "hostile-clients"

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// Starts them, and returns once they are at work.
    init(_ kind: Kind, sockets: UserSockets) async throws {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        process.executableURL = URL(filePath: program)
        process.arguments = [Self.argument, kind.rawValue, "\(UserSockets.uid(of: 1))", sockets.path]
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run()
        guard output.fileHandleForReading.availableData == Data("ready\n".utf8) else {
            throw SoakError("The clients of the flood \(kind.rawValue) did not begin.")
        }
    }

    /// Ends the clients, and returns the number of each result.
    func stop() throws -> String {
        try input.fileHandleForWriting.close()
        let told = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw SoakError("The clients of a flood ended before their time.") }
        return String(decoding: told, as: UTF8.self)
    }
}
