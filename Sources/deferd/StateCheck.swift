import JobModel
import JobStore

/// `deferd --verify-state`: says whether a state or a backup is whole.
enum StateCheck {
    static func run(_ path: String) throws(Daemon.StartError) {
        let found: StateVerification
        do { found = try StateVerification(of: path) } catch { throw Daemon.StartError(error) }
        guard found.flaws.isEmpty else {
            for flaw in found.flaws { print(flaw) }
            throw Daemon.StartError(
                code: .badData,
                message: "The state in \(found.database) is not whole: \(found.flaws.count) flaws; "
                    + "go back to a backup, as deferd(8) says.")
        }
        if found.isOlder {
            print(
                "The pages of \(found.database) are whole; deferd looks at its rows once it has brought them up to date."
            )
        } else {
            print("The state in \(found.database) is whole: \(found.jobs) jobs, \(found.bytes) bytes.")
        }
    }
}
