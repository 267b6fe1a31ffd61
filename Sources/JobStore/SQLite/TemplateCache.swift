import GRDB
import JobModel

/// The templates that one batch of reads needs, each parsed once for all the children that are made of it.
///
/// It lives as long as the batch, and is emptied before its values take more than ``mostBytes`` of memory; only a single
/// template can take more.
final class TemplateCache {
    private static let mostBytes = 8 << 20

    private let connection: Database
    private var known: [Key: JSON] = [:]
    private var bytes = 0

    private struct Key: Hashable {
        let parent: JobID
        let link: Int
    }

    init(_ connection: Database) {
        self.connection = connection
    }

    /// The template of a child and its siblings, or nil where there is none that can be read.
    func template(of parent: Job.Parent) throws(StoreError) -> JSON? {
        let key = Key(parent: parent.job, link: parent.link)
        if let template = known[key] { return template }
        let found: (value: JSON, cost: Int)?
        do {
            let select = try PreparedStatement(
                "SELECT template FROM templates WHERE parent = ?1 AND link = ?2", on: connection)
            select.bind(key.parent, at: 1)
            select.bind(key.link, at: 2)
            found = try select.row { row in row.utf8(0, JobRow.value) ?? nil } ?? nil
        } catch {
            throw StoreError(.read, "The template of job \(parent.job) cannot be read: \(error)", underlying: error)
        }
        guard let found else { return nil }
        if bytes + found.cost > Self.mostBytes {
            known.removeAll()
            bytes = 0
        }
        known[key] = found.value
        bytes += found.cost
        return found.value
    }
}
