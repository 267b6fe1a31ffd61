import DeferredKit
import Dispatch
import FoundationEssentials
import JobModel
import Synchronization

/// What a session knows about downloads: how to resume unfinished ones, and the files of finished ones.
///
/// Stored as files in a directory, or without one in memory: the ``most`` recently changed entries. An entry may have the
/// members `checkpoint` and `record`.
final class SessionRecords: Sendable {
    static let most = 1024

    private struct State {
        var entries: [String: JSONObject] = [:]
        /// Paths, the most recently changed last.
        var order: [String] = []
    }

    private let directory: String?
    private let state = Mutex(State())
    /// Reads and writes the files in order.
    private let queue = DispatchQueue(label: "DataSources.records")

    init(directory: String?) { self.directory = directory.map(SourceSession.absolute) }

    /// Reads the entry of an absolute path.
    func entry(_ path: String) -> Deferred<JSONObject, any Error> {
        guard let directory else { return .succeeded(state.withLock { $0.entries[path] } ?? [:]) }
        return .run(on: .queue(queue)) { Self.read(path, in: directory) }
    }

    /// Changes the entry of an absolute path; succeeds once it is stored.
    func change(_ path: String, _ body: @escaping @Sendable (inout JSONObject) -> Void) -> Deferred<Void, any Error> {
        if let directory {
            return .run(on: .queue(queue)) {
                var entry = Self.read(path, in: directory)
                body(&entry)
                try Self.write(entry, path, in: directory)
            }
        }
        state.withLock { state in
            body(&state.entries[path, default: [:]])
            state.order.removeAll { $0 == path }
            state.order.append(path)
            if state.order.count > Self.most { state.entries[state.order.removeFirst()] = nil }
        }
        return .succeeded(())
    }

    private static func file(_ path: String, in directory: String) -> URL {
        let name = FileDigest.sha256(of: Array(path.utf8))
        return URL(filePath: directory, directoryHint: .isDirectory).appending(path: name + ".json")
    }

    /// Reads an entry; a missing or damaged file counts as empty.
    private static func read(_ path: String, in directory: String) -> JSONObject {
        guard let data = try? Data(contentsOf: file(path, in: directory)),
            let entry = try? JSON(parsing: Array(data)).object, entry["path"]?.string == path
        else { return ["path": .string(path)] }
        return entry
    }

    private static func write(_ entry: JSONObject, _ path: String, in directory: String) throws {
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try Data(JSON.object(entry).utf8).write(to: file(path, in: directory), options: .atomic)
    }
}
