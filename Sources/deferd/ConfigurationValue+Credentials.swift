import DataSources
import Foundation
import Glibc
import JobModel

/// What `http.credentials` says of one host.
struct CredentialEntry: Sendable, Equatable {
    let host: String
    var header = "Authorization"
    /// The name of the file in `$CREDENTIALS_DIRECTORY`.
    var credential = ""
    var users: Set<UInt32>?
    var isInsecure = false
    var line: Int?

    /// The same without its secret, to be checked where that is not at hand.
    func check() throws(ConfigurationValue.Misfit) { _ = try with(HostCredential.Secret("-")) }

    /// With the secret, which is read from `directory`.
    func reading(from directory: String?) throws(ConfigurationValue.Misfit) -> HostCredential {
        guard let directory else {
            throw misfit(
                "needs the credential \"\(credential)\", and there is no CREDENTIALS_DIRECTORY; "
                    + "pass it to the service with LoadCredential=\(credential):FILE")
        }
        guard let text = try? String(contentsOfFile: "\(directory)/\(credential)", encoding: .utf8) else {
            throw misfit(
                "the credential \"\(credential)\" is not in \(directory), or is not UTF-8; "
                    + "pass it to the service with LoadCredential=\(credential):FILE")
        }
        // What editors and echo leave at the end.
        let line = text.hasSuffix("\r\n") || text.hasSuffix("\n") ? String(text.dropLast()) : text
        return try with(HostCredential.Secret(line))
    }

    private func with(_ secret: HostCredential.Secret) throws(ConfigurationValue.Misfit) -> HostCredential {
        do {
            return try HostCredential(
                host: host, header: header, secret: secret, users: users, isInsecure: isInsecure)
        } catch {
            throw misfit(error.message)
        }
    }

    private func misfit(_ reason: String) -> ConfigurationValue.Misfit {
        ConfigurationValue.Misfit(reason: "\(host): \(reason)", line: line)
    }
}

extension ConfigurationValue {
    /// Hosts, each with the name of a credential or a map of `header`, `credential`, `users` and `insecure`; in a variable
    /// `host=credential` separated by commas.
    func credentials() throws(Misfit) -> [CredentialEntry] {
        var entries: [CredentialEntry] = []
        for pair in try pairs("must be hosts with credentials, such as \"example.org: {credential: token}\"") {
            var entry = CredentialEntry(host: pair.name, line: pair.line)
            if pair.value.members == nil { entry.credential = try pair.read(ConfigurationValue.text) }
            for member in pair.value.members ?? [] { try entry.set(member) }
            guard !entry.credential.isEmpty, !entry.credential.contains("/"), !entry.credential.hasPrefix(".") else {
                throw pair.misfit("needs \"credential\", the name of one that LoadCredential= passes")
            }
            try entry.check()
            entries.append(entry)
        }
        return entries
    }
}

extension CredentialEntry {
    fileprivate mutating func set(_ member: ConfigurationValue.Member) throws(ConfigurationValue.Misfit) {
        switch member.name {
        case "header": header = try member.read(of: host, ConfigurationValue.text)
        case "credential": credential = try member.read(of: host, ConfigurationValue.text)
        case "insecure": isInsecure = try member.read(of: host, ConfigurationValue.flag)
        case "users":
            var users: Set<UInt32> = []
            for name in try member.read(of: host, ConfigurationValue.strings) {
                guard let uid = Self.uid(name) else { throw member.misfit("there is no user \"\(name)\"", of: host) }
                users.insert(uid)
            }
            self.users = users
        default: throw member.misfit("is not known; known are header, credential, users and insecure", of: host)
        }
    }

    private static func uid(_ name: String) -> UInt32? {
        if let uid = UInt32(name) { return uid }
        var entry = passwd()
        var buffer = [CChar](repeating: 0, count: 65_536)
        var found: UnsafeMutablePointer<passwd>?
        guard getpwnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return nil }
        return entry.pw_uid
    }
}
