import DataSources
import FoundationEssentials
import Glibc
import JobModel
import YAML

/// The value of `http.credentials` for one host.
struct CredentialEntry: Sendable, Equatable {
    let host: String
    var header = "Authorization"
    /// The name of the file in `$CREDENTIALS_DIRECTORY`.
    var credential = ""
    var users: Set<UInt32>?
    var isInsecure = false
    var line: Int?

    /// The credential with its secret, which is read from `directory`.
    func reading(from directory: String?) throws(ConfigurationErrors) -> HostCredential {
        let hint = "pass it to the service with LoadCredential=\(credential):FILE"
        guard let directory else {
            throw ConfigurationErrors(
                "needs the credential \"\(credential)\", but CREDENTIALS_DIRECTORY is not set; \(hint)")
        }
        guard let text = Self.text(credential, in: directory) else {
            throw ConfigurationErrors(
                "the credential \"\(credential)\" is not in \(directory), or is not UTF-8; \(hint)")
        }
        return try with(text)
    }

    /// The text of a credential in `directory`; nil if there is none.
    static func text(_ credential: String, in directory: String) -> String? {
        guard let text = try? String(contentsOfFile: "\(directory)/\(credential)", encoding: .utf8) else { return nil }
        // Editors and echo add a line end.
        return text.hasSuffix("\r\n") || text.hasSuffix("\n") ? String(text.dropLast()) : text
    }

    fileprivate func with(_ secret: String) throws(ConfigurationErrors) -> HostCredential {
        do {
            return try HostCredential(
                host: host, header: header, secret: HostCredential.Secret(secret), users: users, isInsecure: isInsecure)
        } catch {
            throw ConfigurationErrors(error.message)
        }
    }
}

/// The value of `http.clientCertificates` for one host.
private struct CertificateEntry {
    var certificate = ""
    var key = ""
    var users: Set<UInt32>?
}

extension ConfigurationValue {
    private static let credentialSettings: [ConfigurationSetting<CredentialEntry>] = [
        .init("credential", \.credential) { try $0.text() }, .init("header", \.header) { try $0.text() },
        .init("users", \.users) { try $0.users() }, .init("insecure", \.isInsecure) { try $0.flag() },
    ]

    /// Hosts, each with the name of a credential or a map; in a variable, `host=credential` separated by commas.
    func credentials() throws -> [CredentialEntry] {
        var entries: [CredentialEntry] = []
        try forEach("must be hosts with credentials, such as \"example.org: {credential: token}\"") { member in
            var entry = CredentialEntry(host: member.name, line: member.line)
            try member.value.read(into: &entry, Self.credentialSettings)
            guard !entry.credential.isEmpty, !entry.credential.contains("/"), !entry.credential.hasPrefix(".") else {
                throw ConfigurationErrors("needs \"credential\", the name of a credential that LoadCredential= passes")
            }
            // The rest is checked without the secret, which may not be available yet.
            _ = try entry.with("-")
            entries.append(entry)
        }
        return entries
    }

    private static let certificateSettings: [ConfigurationSetting<CertificateEntry>] = [
        .init("certificate", \.certificate) { try $0.path() }, .init("key", \.key) { try $0.path() },
        .init("users", \.users) { try $0.users() },
    ]

    /// Hosts, each with the files of a certificate and its key, which are read.
    func clientCertificates() throws -> [ClientCertificate] {
        var certificates: [ClientCertificate] = []
        let hint = "must be hosts with certificates, such as \"example.org: {certificate: /c.pem, key: /k.pem}\""
        guard members != nil else { throw ConfigurationErrors(hint) }
        try forEach(hint) { member in
            var entry = CertificateEntry()
            guard member.value.members != nil else { throw ConfigurationErrors(hint) }
            try member.value.read(into: &entry, Self.certificateSettings)
            guard !entry.certificate.isEmpty, !entry.key.isEmpty else {
                throw ConfigurationErrors("needs \"certificate\" and \"key\"")
            }
            do throws(JobError) {
                certificates.append(
                    try ClientCertificate(
                        host: member.name, certificate: entry.certificate, key: entry.key, users: entry.users))
            } catch {
                throw ConfigurationErrors(error.message)
            }
        }
        return certificates
    }

    /// The path of a file of authorities, which is read to check it.
    func authorities() throws -> String? {
        guard single != "" else { return nil }
        let path = try path()
        do throws(JobError) { try ClientCertificate.check(authorities: path) } catch {
            throw ConfigurationErrors(error.message)
        }
        return path
    }

    private func users() throws -> Set<UInt32> {
        try strings().reduce(into: []) { users, name in
            guard let uid = UInt32(name) ?? getpwnam(name)?.pointee.pw_uid else {
                throw ConfigurationErrors("there is no user \"\(name)\"")
            }
            users.insert(uid)
        }
    }
}
