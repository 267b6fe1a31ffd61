import DataSources
import Foundation
import JobModel

extension Configuration {
    /// What the command line says.
    struct Flags: Sendable {
        var config: String?
        var instance: Instance.Kind?
        var socket: String?
        var stateDirectory: String?
        var downloadsDirectory: String?
        var logLevel: String?
    }

    /// Reads defaults, file, variables and flags, the later over the earlier.
    ///
    /// Credentials are read where the service manager passes some, and where they are needed; without `needsSecrets` only
    /// whether they could be is checked.
    static func load(
        _ flags: Flags, environment: [String: String], needsSecrets: Bool = true
    ) throws(ConfigurationError) -> Configuration {
        let instance = Instance(flags.instance, environment: environment)
        var configuration = Configuration(of: instance)
        if let path = flags.config ?? instance.configurationFile {
            let file = try ConfigurationFile(path: path)
            for entry in file.entries {
                try configuration.apply(entry.key, entry.value, at: { "\(path):\($0 ?? entry.line)" })
            }
        }
        for key in ConfigurationKey.all {
            for variable in key.variables {
                guard let text = environment[variable] else { continue }
                try configuration.apply(key, .scalar(text), at: { _ in variable })
                break
            }
        }
        let overrides: [(String, String?, String)] = [
            ("socket.path", flags.socket.map(absolute), "--socket"),
            ("state.directory", flags.stateDirectory.map(absolute), "--state-directory"),
            ("downloads.directory", flags.downloadsDirectory.map(absolute), "--downloads-directory"),
            ("log.level", flags.logLevel, "--log-level"),
        ]
        for case (let name, let text?, let flag) in overrides {
            guard let key = ConfigurationKey.named(name) else { continue }
            try configuration.apply(key, .scalar(text), at: { _ in flag })
        }
        try configuration.check()
        let secrets = environment["CREDENTIALS_DIRECTORY"]
        if needsSecrets || secrets != nil {
            for entry in configuration.credentials {
                do { configuration.http.credentials.append(try entry.reading(from: secrets)) } catch {
                    let path = flags.config ?? instance.configurationFile
                    let location = error.line.map { "\(path ?? ""):\($0)" } ?? "DEFERD_HTTP_CREDENTIALS"
                    throw ConfigurationError(location: location, key: "http.credentials", reason: error.reason)
                }
            }
        }
        return configuration
    }

    private mutating func apply(
        _ key: ConfigurationKey, _ value: ConfigurationValue, at location: (_ line: Int?) -> String
    ) throws(ConfigurationError) {
        do { try key.apply(&self, value) } catch {
            throw ConfigurationError(location: location(error.line), key: key.name, reason: error.reason)
        }
        // Values that only the sources can check are checked at once, while the line is known.
        do { try sources.check() } catch {
            throw ConfigurationError(location: location(nil), key: key.name, reason: error.message)
        }
    }

    /// Checks what involves more than one key.
    private func check() throws(ConfigurationError) {
        let needed = [
            ("socket.path", socketPath, "as XDG_RUNTIME_DIR is not set", "--socket"),
            ("state.directory", stateDirectory, "as neither XDG_STATE_HOME nor HOME is set", "--state-directory"),
        ]
        for (key, path, why, flag) in needed where path.isEmpty {
            throw ConfigurationError(
                location: "defaults", key: key, reason: "has no default, \(why); set it in the file or by \(flag)")
        }
    }

    private static func absolute(_ path: String) -> String {
        path.isEmpty || path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }
}
