import CLinux
import GRDB
import Glibc
import JobModel

/// The sizes of the bodies of jobs that stand in files, by link, as a row has them.
enum StoredBodies {
    static func json(_ sizes: [Int: Int]) -> JSON {
        var object = JSONObject()
        for (link, size) in sizes.sorted(by: { $0.key < $1.key }) { object.append(String(link), JSON(size)) }
        return .object(object)
    }

    /// Nil where they make no sense.
    static func sizes(_ json: JSON) -> [Int: Int]? {
        guard case .object(let object) = json else { return nil }
        var sizes: [Int: Int] = [:]
        for member in object.members {
            guard let link = Int(member.name), let size = member.value.int, link >= 0, size >= 0 else { return nil }
            sizes[link] = size
        }
        return sizes
    }

    /// Writes into the rows of a database that knows no sizes what the files in `directory` have.
    static func count(in directory: String, _ connection: Database) throws {
        let update = try connection.makeStatement(
            sql: "UPDATE jobs SET bodies = ?2, size = size + ?3 WHERE id = ?1 AND bodies IS NULL")
        for (job, sizes) in files(in: directory) {
            let sum = sizes.values.reduce(0) { $0.saturatingAdding($1) }
            try update.execute(arguments: [job, String(decoding: json(sizes).utf8, as: UTF8.self), sum])
        }
    }

    /// The bodies in `directory`, whose names are a job's id and a link's number.
    private static func files(in directory: String) -> [JobID: [Int: Int]] {
        guard let listing = opendir(directory) else { return [:] }
        defer { closedir(listing) }
        var found: [JobID: [Int: Int]] = [:]
        while let entry = readdir(listing) {
            let name = String(cString: deferd_entry_name(entry))
            let parts = name.split(separator: "-")
            var status = stat()
            guard parts.count == 2, let job = JobID(parts[0]), let link = Int(parts[1]), link >= 0,
                fstatat(dirfd(listing), name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG
            else { continue }
            found[job, default: [:]][link] = Int(status.st_size)
        }
        return found
    }
}
