import JobClient
import JobModel

extension DownloadCommand {
    /// Downloads many files: submits all, then waits for all of them, with one line of progress.
    func performAll(_ invocation: Invocation) async throws -> ExitStatus {
        let (status, jobs) = try await invocation.withDaemon { client in
            try await BulkSubmission(
                client: client,
                accept: { if options.detach { try invocation.show($0.json, as: String($0.id)) } },
                refuse: { invocation.console.say($0) }
            ).run(DownloadEntries(self, isOwn: try await Surroundings.takesPaths(client)))
        }
        if options.detach || jobs.isEmpty { return status }
        let console = invocation.console
        let display = JobsDisplay(
            format: console.messageFormat, isLog: !console.showsMessages, total: jobs.count, isSilent: options.quiet)
        // Progress is not shown, so it need not be sent.
        let watching = Watching(invocation: invocation, interval: 3600) { event in
            guard !invocation.writesJSON, case .state(let job) = event.change, job.state == "failed" else { return nil }
            return JobText(job, now: .now).errorSentence
        }
        let interruption = Interruption(from: "wait", jobs: jobs, by: invocation.socket.command)
        let (ended, missing) = try await watching.show(with: display, interruption) {
            try await $0.follow(jobs, with: $1)
        }
        let paths = ended.compactMap { $0.isSucceeded ? $0.result?["path"]?.string : nil }
        try invocation.show(ended.map(\.json), as: console.showsData ? paths.map(\.sanitized) : paths)
        return .worst([status] + missing + ended.map { ExitStatus(jobState: $0.state) })
    }
}

/// A URL to download, with what its line in a list says.
struct DownloadEntry: Sendable, Equatable {
    let url: String
    /// The name of the file; nil for the last part of the URL.
    var name: String?
    var checksum: JSON?
    var mirrors: [String] = []

    init(url: String) { self.url = url }

    /// Reads the line of a list: a URL, then a name, a digest or further URLs in any order.
    init(line: String) throws(CommandFailure) {
        let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
        guard let url = words.first, Self.isURL(url) else {
            throw CommandFailure(
                .badData,
                "\"\(line.cut(to: 60, mark: "..."))\" does not begin with a URL; write one as https://host/path.")
        }
        self.url = url
        for word in words.dropFirst() {
            let parts = word.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 == ":" || $0 == "=" }
            let isHex = parts.last?.allSatisfy { $0.isASCII && $0.isHexDigit } ?? false
            if ["sha256:", "sha512:", "sha1:", "md5:"].contains(where: word.lowercased().hasPrefix) {
                checksum = word.json
            } else if isHex, word.utf8.count == 64, parts.count == 1 {
                checksum = digest(word)
            } else if isHex, parts.count == 2, parts[1].utf8.count >= 32, !parts[0].contains("/") {
                // As a name, it would leave the file unchecked.
                throw CommandFailure(
                    .badData,
                    "\"\(word.cut(to: 60, mark: "..."))\" is not a digest that deferd knows; write one as sha256:HEX.")
            } else if Self.isURL(word) {
                mirrors.append(word)
            } else if word.hasPrefix("/") {
                throw CommandFailure(
                    .badData, "A list cannot name \"\(word)\"; names are relative to the target, --to.")
            } else if name == nil {
                name = word
            } else {
                throw CommandFailure(
                    .badData, "The line has two names, \"\(name ?? "")\" and \"\(word)\"; keep one of them.")
            }
        }
    }

    /// Whether it has a scheme, and so is not meant as a path.
    static func isURL(_ text: String) -> Bool {
        let scheme = text.prefix { $0 != ":" && $0 != "/" }
        return !scheme.isEmpty && text.dropFirst(scheme.count).hasPrefix("://")
    }

    static func name(in url: String) -> String? {
        var rest = url.prefix { $0 != "?" && $0 != "#" }
        if let scheme = rest.utf8.firstIndex(of: UInt8(ascii: ":")), rest[scheme...].hasPrefix("://") {
            rest = rest[scheme...].dropFirst(3)
        }
        guard let slash = rest.lastIndex(of: "/") else { return nil }
        let part = String(rest[rest.index(after: slash)...])
        let decoded = PercentEncoding.decoded(part) ?? part
        let name = decoded.contains("/") || decoded.unicodeScalars.contains("\0") ? part : decoded
        return ["", ".", ".."].contains(name) ? nil : name
    }
}

/// The specs of many downloads, in the order of the command line or of a list.
struct DownloadEntries: AsyncIteratorProtocol, Sendable {
    private let command: DownloadCommand
    private let isOwn: Bool
    private var lines: InputLines?
    private var urls: ArraySlice<String>

    init(_ command: DownloadCommand, isOwn: Bool) {
        (self.command, self.isOwn, urls) = (command, isOwn, command.urls[...])
        lines = command.list.map(InputLines.init(path:))
    }

    mutating func next() async throws(CommandFailure) -> SpecDocuments.Document? {
        if let url = urls.popFirst() { return document(at: url, .success(DownloadEntry(url: url))) }
        while let line = try await lines?.next() {
            if line.bytes.first(where: { $0 != 0x20 && $0 != 0x09 }) == UInt8(ascii: "#") { continue }
            let entry = Result { () throws(CommandFailure) in
                if let text = String(validating: line.bytes, as: UTF8.self) { return try DownloadEntry(line: text) }
                throw CommandFailure(.badData, "\"\(String(escaping: line.bytes))\" is not UTF-8 and cannot be sent.")
            }
            return document(at: "line \(line.number)", entry)
        }
        return nil
    }

    private func document(
        at location: String, _ entry: Result<DownloadEntry, CommandFailure>
    ) -> SpecDocuments.Document {
        let spec = entry.flatMap { entry in
            Result { () throws(CommandFailure) in command.options.spec(source: try command.source(entry, isOwn: isOwn))
            }
        }
        return SpecDocuments.Document(location: location, spec: spec)
    }
}
