import JobEngine
import JobModel
import YAML

enum ConfigurationFile {
    /// The maximum size in bytes; parsing takes many times as much memory while the daemon serves.
    private static let longest = 1 << 20

    /// The sections of the file at `path`; an empty file is an empty map.
    static func contents(of path: String) throws(ConfigurationErrors) -> ConfigurationValue {
        let text = try text(of: path)
        let documents: [ConfigurationValue]
        do { documents = try YAMLNode.documents(in: text) } catch {
            throw ConfigurationErrors(error.reason, in: path, line: error.place.line)
        }
        if documents.count > 1 {
            throw ConfigurationErrors(
                "is a second document; keep one, and remove the line ---", in: path, line: documents[1].place?.line)
        }
        return documents.first ?? YAMLNode(.map([]))
    }

    private static func text(of path: String) throws(ConfigurationErrors) -> [UInt8] {
        var reason = "cannot be read; check its path, its mode and that it is a file"
        do { return try RegularFile.contents(of: path, atMost: longest) } catch .missing {
            reason = "there is no such file; check its path"
        } catch .tooLong {
            reason = "is longer than \(longest) bytes, and no more are read; take out what is not a setting"
        } catch {}
        throw ConfigurationErrors(reason, in: path)
    }
}
