import ArgumentParser
import DataSources
import FoundationEssentials
import Glibc
import JobEngine
import JobModel
import JobServer
import SystemPackage
import YAML

extension Configuration {
    /// The settings on the command line.
    struct Flags: ParsableArguments {
        @Option(help: ArgumentHelp("Read settings from this YAML file.", valueName: "file")) var config: String?

        @Option(
            help: ArgumentHelp(
                "Serve all users of the system, or only the user who runs it: system or user.", valueName: "kind"))
        var instance: Instance.Kind?

        @Option(help: ArgumentHelp("Listen on this Unix socket.", valueName: "path")) var socket: String?
        @Option(help: ArgumentHelp("Keep jobs in this directory.", valueName: "dir")) var stateDirectory: String?

        @Option(help: ArgumentHelp("Put downloads with a relative path into this directory.", valueName: "dir"))
        var downloadsDirectory: String?

        @Option(
            help: ArgumentHelp(
                "The lowest level to log: trace, debug, info, notice, warning, error, critical.", valueName: "level"))
        var logLevel: String?
    }

    /// Reads defaults, file, variables and flags; each overrides those before it.
    ///
    /// Credentials are read if the service manager passes any, or if the program `serves`; otherwise they are only checked, and
    /// no socket is needed.
    static func load(
        _ flags: Flags, environment: [String: String], serves: Bool = true
    ) throws(ConfigurationErrors) -> Configuration {
        let instance = Instance(flags.instance, environment: environment)
        let path = flags.config ?? instance.configurationFile
        var configuration = Configuration(of: instance)
        // A file that cannot be read may have set the keys that seem to be missing.
        var (errors, isRead) = ([ConfigurationError](), true)
        if let path {
            do throws(ConfigurationErrors) {
                errors += configuration.apply(try contents(of: path), to: "", from: path, line: 1)
            } catch {
                errors += error.errors
                isRead = false
            }
        }
        for key in ConfigurationKey.all {
            guard let variable = key.variables.first(where: { environment[$0] != nil }) else { continue }
            errors += configuration.apply(key, ConfigurationValue(environment[variable] ?? ""), from: variable)
        }
        let overrides: [(String, String?, String)] = [
            ("socket.path", flags.socket.map(absolute), "--socket"),
            ("state.directory", flags.stateDirectory.map(absolute), "--state-directory"),
            ("downloads.directory", flags.downloadsDirectory.map(absolute), "--downloads-directory"),
            ("log.level", flags.logLevel, "--log-level"),
        ]
        for case (let name, let text?, let flag) in overrides {
            guard let key = ConfigurationKey.named(name) else { continue }
            errors += configuration.apply(key, ConfigurationValue(text), from: flag)
        }
        let known = errors.compactMap(\.key) + (serves ? [] : ["socket.path"])
        if isRead { errors += configuration.missing(besides: Set(known)) }
        // With programs that could not be read, any hook would seem wrong.
        if isRead, !errors.contains(where: { $0.key?.hasPrefix("programs") == true }) {
            errors += configuration.hookFlaws
        }
        let secrets = environment["CREDENTIALS_DIRECTORY"]
        for entry in serves || secrets != nil ? configuration.credentials : [] {
            do throws(ConfigurationErrors) {
                configuration.http.credentials.append(try entry.reading(from: secrets))
            } catch {
                let location = entry.line.flatMap { _ in path } ?? "DEFERD_HTTP_CREDENTIALS"
                errors +=
                    error.located(line: entry.line, of: entry.host)
                    .located(at: location, line: nil, of: "http.credentials").errors
            }
        }
        configuration.storePassword = secrets.flatMap { CredentialEntry.text("store-password", in: $0) }
        configuration.adminGroupID = configuration.adminGroup.flatMap { try? Listener.group($0) }
        if serves { errors += configuration.flaws(ofGroup: configuration.adminGroup, "access.adminGroup") }
        guard errors.isEmpty else { throw ConfigurationErrors(errors: errors) }
        return configuration
    }

    /// The maximum size of a file in bytes; parsing takes many times as much memory while the daemon serves.
    private static let longestFile = 1 << 20

    /// The sections of the file at `path`; an empty file is an empty map.
    private static func contents(of path: String) throws(ConfigurationErrors) -> ConfigurationValue {
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
        do { return try RegularFile.contents(of: path, atMost: longestFile) } catch .noSuchFileOrDirectory {
            reason = "there is no such file; check its path"
        } catch .fileTooLarge {
            reason = "is longer than \(longestFile) bytes, and no more are read; take out what is not a setting"
        } catch {}
        throw ConfigurationErrors(reason, in: path)
    }

    /// Values that are valid but will not work, each with its place. Reads the disk, which blocks.
    var warnings: [ConfigurationError] {
        let roots = downloads.roots.filter(Self.isMissing).map { root in
            warning(
                "downloads.roots",
                "there is no directory \"\(root)\", so every download or upload there will fail; create it, "
                    + "or remove it from the list")
        }
        let commands = programs.entries.sorted { $0.key < $1.key }.compactMap { name, entry -> ConfigurationError? in
            guard let path = entry.command.first, Self.lacksProgram(path) else { return nil }
            return warning(
                "programs", entry: name,
                "there is no program \"\(path)\", so every job with it will fail; install it, or change its "
                    + "command", line: programs.lines[name])
        }
        var hook: [ConfigurationError] = []
        if case .command(let command)? = finishedHook, let path = command.first, Self.lacksProgram(path) {
            hook = [
                warning(
                    "hooks.finished",
                    "there is no program \"\(path)\", so no end of a job will be told; install it, or name another")
            ]
        }
        return roots + commands + hook + flaws(ofGroup: socketGroup, "socket.group")
            + flaws(ofGroup: adminGroup, "access.adminGroup")
    }

    /// Why the daemon cannot use a group.
    private func flaws(ofGroup name: String?, _ key: String) -> [ConfigurationError] {
        guard let name, (try? Listener.group(name)) == nil else { return [] }
        return [warning(key, "there is no group \"\(name)\"; create it with: groupadd --system \(name)")]
    }

    /// Why the program of `hooks.finished` cannot run, known once all keys are read.
    private var hookFlaws: [ConfigurationError] {
        switch finishedHook {
        case .command? where isSystemInstance:
            [
                warning(
                    "hooks.finished", "must name a program under programs; only a user's own instance takes a command")
            ]
        case .named(let name)? where programs.entries[name] == nil:
            [
                warning(
                    "hooks.finished", "there is no program \"\(name.echoed)\" under programs; add it, or name another")
            ]
        default: []
        }
    }

    private func warning(
        _ key: String, entry: String? = nil, _ reason: String, line: Int? = nil
    ) -> ConfigurationError {
        let origin = origins[key]
        return ConfigurationError(
            location: origin?.location ?? "defaults", line: line ?? origin?.line,
            key: entry.map { "\(key).\($0)" } ?? key, reason: reason)
    }

    private static func lacksProgram(_ path: String) -> Bool {
        access(path, X_OK) != 0 && [ENOENT, ENOTDIR].contains(errno)
    }

    /// Whether there is certainly no directory at this path; it may be invisible to this user.
    private static func isMissing(_ path: String) -> Bool {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return [ENOENT, ENOTDIR].contains(errno) }
        return facts.st_mode & S_IFMT != S_IFDIR
    }

    /// Applies the keys of a file or of a section of it; an invalid key does not affect the others.
    private mutating func apply(
        _ section: ConfigurationValue, to prefix: String, from path: String, line: Int
    ) -> [ConfigurationError] {
        guard let members = section.members else {
            // All keys of the section may be commented out.
            if section.single == "" { return [] }
            let key = prefix.isEmpty ? nil : String(prefix.dropLast())
            return [ConfigurationError(location: path, line: line, key: key, reason: "must be keys with values")]
        }
        var errors: [ConfigurationError] = []
        for member in members {
            let (name, line) = (prefix + member.name, member.line ?? line)
            if let key = ConfigurationKey.named(name) {
                errors += apply(key, member.value, from: path, line: line)
            } else if ConfigurationKey.all.contains(where: { $0.name.hasPrefix("\(name).") }) {
                errors += apply(member.value, to: "\(name).", from: path, line: line)
            } else {
                let known = ConfigurationKey.all.filter { $0.name.hasPrefix(prefix) }
                    .map { String($0.name.dropFirst(prefix.count).prefix { $0 != "." }) }
                    .reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
                let hint = member.name.nearest(among: known).map { "did you mean \($0)? Known" } ?? "known"
                let reason = "there is no such key; \(hint) are \(known.joined(separator: ", "))"
                errors.append(ConfigurationError(location: path, line: line, key: name, reason: reason))
            }
        }
        return errors
    }

    /// Applies one value, or changes nothing and returns what is wrong with it.
    private mutating func apply(
        _ key: ConfigurationKey, _ value: ConfigurationValue, from location: String, line: Int? = nil
    ) -> [ConfigurationError] {
        var changed = self
        do { try key.apply(&changed, value) } catch {
            let errors = error as? ConfigurationErrors ?? ConfigurationErrors("\(error)")
            return errors.located(at: location, line: line, of: key.name).errors
        }
        // Only the sources can check some values; here the line is still known.
        do throws(JobError) {
            try changed.sources.check()
        } catch {
            // A flaw from before is not this value's fault.
            if (try? sources.check()) != nil {
                return [ConfigurationError(location: location, line: line, key: key.name, reason: error.message)]
            }
        }
        self = changed
        origins[key.name] = Origin(location: location, line: line)
        return []
    }

    /// The keys that have no value, except those that have another error.
    private func missing(besides keys: Set<String>) -> [ConfigurationError] {
        let needed = [
            ("socket.path", socketPath, "as XDG_RUNTIME_DIR is not set", "--socket"),
            ("state.directory", stateDirectory, "as neither XDG_STATE_HOME nor HOME is set", "--state-directory"),
        ]
        return needed.filter { $0.1.isEmpty && !keys.contains($0.0) }.map { key, _, why, flag in
            ConfigurationError(
                location: "defaults", key: key, reason: "has no default, \(why); set it in the file or with \(flag)")
        }
    }

    private static func absolute(_ path: String) -> String {
        path.isEmpty || path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }
}
