import GRDB
import JobModel

/// The templates that one batch of reads needs, each parsed once for all the children that are made of it.
///
/// It lives as long as the batch, and is emptied before it has more than ``mostBytes`` of text; only a single template
/// can be larger.
final class TemplateCache {
    private static let mostBytes = 1 << 20

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
        let found: (template: JSON, size: Int)?
        do {
            let select = try PreparedStatement(
                "SELECT template FROM templates WHERE parent = ?1 AND link = ?2", on: connection)
            select.bind(key.parent, at: 1)
            select.bind(key.link, at: 2)
            found = try select.row { row in
                row.utf8(0) { text in
                    (try? JSONParser.parse(text, maximumDepth: JobRow.maximumDepth)).map { ($0, text.count) }
                }?.flatMap(\.self)
            }
        } catch {
            throw StoreError(.read, "The template of job \(parent.job) cannot be read: \(error)", underlying: error)
        }
        guard let found else { return nil }
        if bytes + found.size > Self.mostBytes {
            known.removeAll()
            bytes = 0
        }
        known[key] = found.template
        bytes += found.size
        return found.template
    }
}
