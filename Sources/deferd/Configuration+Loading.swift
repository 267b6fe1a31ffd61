import DataSources
import Foundation
import Glibc
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
    ) throws(ConfigurationErrors) -> Configuration {
        let instance = Instance(flags.instance, environment: environment)
        let path = flags.config ?? instance.configurationFile
        var configuration = Configuration(of: instance)
        // What a file that cannot be read would have set is not missing.
        var (errors, isRead) = ([ConfigurationError](), true)
        if let path {
            do throws(ConfigurationError) {
                errors += configuration.apply(try ConfigurationFile(path: path))
            } catch {
                errors.append(error)
                isRead = false
            }
        }
        for key in ConfigurationKey.all {
            for variable in key.variables {
                guard let text = environment[variable] else { continue }
                errors += configuration.apply(key, .scalar(text), from: variable)
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
            errors += configuration.apply(key, .scalar(text), from: flag)
        }
        if isRead { errors += configuration.missing(besides: Set(errors.compactMap(\.key))) }
        let secrets = environment["CREDENTIALS_DIRECTORY"]
        if needsSecrets || secrets != nil {
            for entry in configuration.credentials {
                do throws(ConfigurationValue.Misfit) {
                    configuration.http.credentials.append(try entry.reading(from: secrets))
                } catch {
                    let location = error.line.flatMap { _ in path } ?? "DEFERD_HTTP_CREDENTIALS"
                    errors.append(
                        ConfigurationError(
                            location: location, line: error.line, key: "http.credentials", reason: error.reason))
                }
            }
        }
        guard errors.isEmpty else { throw ConfigurationErrors(errors: errors) }
        return configuration
    }

    /// What is right as it is written and will not work all the same, each as a sentence. Looks at the disk, which blocks.
    var warnings: [String] {
        downloads.roots.filter(Self.isMissing).map { root in
            "downloads.roots: there is no directory \"\(root)\", and no download or upload there can succeed; make it, as deferd "
                + "does not, or take it out of the list."
        }
    }

    /// Whether there is surely no directory of this path. One that only others may look into can be there.
    private static func isMissing(_ path: String) -> Bool {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return [ENOENT, ENOTDIR].contains(errno) }
        return facts.st_mode & S_IFMT != S_IFDIR
    }

    /// Takes a file over, and gives what is wrong with it in the order of its lines.
    private mutating func apply(_ file: ConfigurationFile) -> [ConfigurationError] {
        var errors = file.faults
        for entry in file.entries { errors += apply(entry.key, entry.value, from: file.path, line: entry.line) }
        return errors.sorted { ($0.line ?? 0) < ($1.line ?? 0) }
    }

    /// Takes one value over, or leaves all as it was and gives what is wrong with it.
    private mutating func apply(
        _ key: ConfigurationKey, _ value: ConfigurationValue, from location: String, line: Int? = nil
    ) -> [ConfigurationError] {
        var changed = self
        do throws(ConfigurationValue.Misfit) {
            try key.apply(&changed, value)
        } catch {
            return misfits(of: key, value, error).map {
                ConfigurationError(location: location, line: $0.line ?? line, key: key.name, reason: $0.reason)
            }
        }
        // Values that only the sources can check are checked at once, while the line is known.
        do throws(JobError) {
            try changed.sources.check()
        } catch {
            // What was wrong before is no fault of this value.
            if (try? sources.check()) != nil {
                return [ConfigurationError(location: location, line: line, key: key.name, reason: error.message)]
            }
        }
        self = changed
        return []
    }

    /// All misfits of a value that has one: each pair of a map may have its own.
    private func misfits(
        of key: ConfigurationKey, _ value: ConfigurationValue, _ first: ConfigurationValue.Misfit
    ) -> [ConfigurationValue.Misfit] {
        guard case .map(let members) = value else { return [first] }
        var misfits: [ConfigurationValue.Misfit] = []
        for member in members {
            var scratch = self
            do throws(ConfigurationValue.Misfit) {
                try key.apply(&scratch, .map([member]))
            } catch {
                if !misfits.contains(error) { misfits.append(error) }
            }
        }
        return misfits.isEmpty ? [first] : misfits
    }

    /// The keys that have no value, but for those of which something else is wrong.
    private func missing(besides keys: Set<String>) -> [ConfigurationError] {
        let needed = [
            ("socket.path", socketPath, "as XDG_RUNTIME_DIR is not set", "--socket"),
            ("state.directory", stateDirectory, "as neither XDG_STATE_HOME nor HOME is set", "--state-directory"),
        ]
        return needed.filter { $0.1.isEmpty && !keys.contains($0.0) }.map { key, _, why, flag in
            ConfigurationError(
                location: "defaults", key: key, reason: "has no default, \(why); set it in the file or by \(flag)")
        }
    }

    private static func absolute(_ path: String) -> String {
        path.isEmpty || path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }
}
