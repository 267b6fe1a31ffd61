import ArgumentParser
import JobClient
import JobModel

/// Copies the daemon's state into a file.
struct BackupCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy the daemon's state into a file, while jobs run.",
        discussion: """
            The file is of one moment and has every job with its result. It is made for you alone, and never over one \
            that is there. Files that jobs downloaded are not in it. deferd(8) says how to go back to it. Only \
            administrators may do this.

            Example: deferctl backup deferd-backup.db
            """)

    @OptionGroup var global: GlobalOptions

    @Argument(help: "The file to make.", completion: .file())
    var path: String

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let file = try NewFile(path: path)
        do {
            let size = try await invocation.withDaemon { client in
                let size = try await client.backUp()
                var offset = 0
                while offset < size {
                    let piece = try await client.backupPiece(offset: offset)
                    try file.write(piece.bytes)
                    offset += piece.bytes.count
                }
                return size
            }
            try file.finish()
            if invocation.writesJSON {
                try invocation.console.line(["path": .string(path), "size": JSON(size)])
            } else {
                invocation.console.say("\(path.sanitized) has the state, \(size) bytes.")
            }
            return .ok
        } catch {
            file.remove()
            throw error
        }
    }
}
