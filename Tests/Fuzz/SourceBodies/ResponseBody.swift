import DataSources
import DeferredKit
import Foundation
package import FuzzBodies
import JobModel
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// HTTP responses, read by the sources of jobs over real sockets.
///
/// The first byte of an input selects the source; the rest is the server's answer. Lines with only `--next--` divide it
/// into answers for consecutive connections. For a download over several connections, the rest controls a
/// ``FuzzedFile``.
package final class ResponseBody: Sendable {
    /// The digest that a download with a checksum expects.
    private static let expected = Array("expected".utf8)
    /// Far longer than a timeout allows.
    private static let longest = Duration.seconds(15)
    private static let timeout = 1.0

    /// Connections of a download over several.
    private static let segments = 4
    /// The kinds of errors with which a source may fail.
    private static let kinds: Set<JobError.Kind> = [
        .dns, .connect, .tls, .network, .timeout, .http, .policy, .exists, .storage, .checksum, .parse, .select,
        .tooLarge, .invalid,
    ]

    private let server: FuzzedServer
    private let library: SourceLibrary
    private let directory: String
    private let downloads: String

    package init(directory: String) throws {
        self.directory = directory
        downloads = directory + "/downloads"
        try FileManager.default.createDirectory(atPath: downloads, withIntermediateDirectories: true)
        var settings = SourceSettings()
        settings.downloads.directory = downloads
        settings.downloads.minimumFree = 0
        settings.policy.allowHosts = [FuzzedServer.host]
        settings.http.connectTimeout = Self.timeout
        settings.http.idleTimeout = Self.timeout
        settings.http.redirects = 3
        settings.limits.body = 1 << 20
        settings.limits.header = 8 << 10
        var logger = Logger(label: "fuzz")
        logger.logLevel = .critical
        // No input is about a loss of power, and each that succeeds would wait for the disk.
        var files = FileOperations.real
        files.sync = { _ in }
        server = try FuzzedServer()
        library = try SourceLibrary(
            settings: settings, group: MultiThreadedEventLoopGroup.singleton, logger: logger, files: files)
    }

    package func check(_ input: [UInt8]) throws(Finding) {
        guard let kind = input.first else { return }
        switch kind % 8 {
        case 5: try checkSegments(input.dropFirst(), isChecked: false)
        case 6: try checkSegments(input.dropFirst(), isChecked: true)
        case 7: try checkUpload(Self.parts(of: input.dropFirst()))
        case let kind: try check(Self.parts(of: input.dropFirst()), kind)
        }
    }

    private func check(_ answers: [[UInt8]], _ kind: UInt8) throws(Finding) {
        server.serve(answers.map(ByteBuffer.init(bytes:)))
        switch kind {
        case 0: _ = try outcome(["type": "url", "url": url])
        case 1: _ = try outcome(["type": "url", "url": url, "method": "HEAD", "accept": "any"])
        case 2: _ = try outcome(["type": "json", "url": url, "select": "/0"])
        case 3: try check(answers, try outcome(["type": "download", "url": url, "path": "file"]), nil)
        default:
            let source: JSON = [
                "type": "download", "url": url, "path": "file", "checksum": .string(Self.checksum(of: Self.expected)),
            ]
            try check(answers, try outcome(source), Self.expected)
        }
    }

    /// A download over several connections is one version of the file, whatever the answers are, or fails.
    private func checkSegments(_ input: ArraySlice<UInt8>, isChecked: Bool) throws(Finding) {
        let file = FuzzedFile(input, mayLie: isChecked)
        server.serve(file.answer)
        var source: [String: JSON] = [
            "type": "download", "url": url, "path": "file", "segments": JSON(Self.segments),
        ]
        if isChecked { source["checksum"] = .string(Self.checksum(of: Array(FuzzedFile.expected))) }
        let members = source.map { JSONObject.Member(name: $0.key, value: $0.value) }
        let result = try outcome(.object(JSONObject(members)))
        guard let bytes = try delivered(result) else { return }
        if isChecked {
            return try Finding.unless(
                bytes.elementsEqual(FuzzedFile.expected), "The file is not what its checksum says.")
        }
        guard let version = file.version(of: bytes) else {
            throw Finding("The file is none of its versions: \(result ?? .null)")
        }
        let tag = result?["etag"]?.string
        try Finding.unless(
            tag.map { $0.hasSuffix(file.validator(of: version)) } ?? true,
            "The file is version \(version): \(result ?? .null)")
    }

    /// An upload succeeds only if the server said so, and sends the content of the file, which does not change.
    private func checkUpload(_ answers: [[UInt8]]) throws(Finding) {
        let path = downloads + "/sent"
        guard FileManager.default.createFile(atPath: path, contents: Data(Self.expected)) else { return }
        defer { try? FileManager.default.removeItem(atPath: path) }
        server.serve(answers.map(ByteBuffer.init(bytes:)))
        let result = try outcome(["type": "upload", "url": url, "path": "sent"])
        let names = try? FileManager.default.contentsOfDirectory(atPath: downloads)
        try Finding.unless(
            names == ["sent"] && FileManager.default.contents(atPath: path).map(Array.init) == Self.expected,
            "The upload left \(names ?? []), or another file.")
        guard let result else { return }
        try Finding.unless(
            result["status"]?.int.map { (200..<300).contains($0) } ?? false
                && result["size"]?.int == Self.expected.count
                && result["sha256"]?.string == Self.digest(of: Self.expected), "The upload succeeded so: \(result)")
        // Whatever a server answers an upload with, its word begins with a 2 behind a version.
        try Finding.unless(
            answers.contains { answer in
                // By bytes, as a CR with a LF is one character.
                answer.split(separator: 0x0A).contains { line in
                    line.starts(with: "HTTP/".utf8) && String(decoding: line, as: UTF8.self).contains(" 2")
                }
            }, "The upload succeeded though no answer says so: \(result)")
    }

    private var url: JSON { .string("http://\(FuzzedServer.host):\(server.port)/x") }

    private static func checksum(of bytes: [UInt8]) -> String { "sha256:" + digest(of: bytes) }

    private static func digest(of bytes: [UInt8]) -> String { FileDigest.sha256(of: bytes) }

    private static func parts(of bytes: ArraySlice<UInt8>) -> [[UInt8]] {
        let mark = Array("\n--next--\n".utf8)
        var parts: [[UInt8]] = []
        var rest = bytes
        while let range = rest.firstRange(of: mark), parts.count < 4 {
            parts.append(Array(rest[..<range.lowerBound]))
            rest = rest[range.upperBound...]
        }
        return parts + [Array(rest)]
    }

    /// Runs a source, an interrupted download once more, and returns the outcome.
    private func outcome(_ source: JSON) throws(Finding) -> JSON? {
        let checkpoint = Mutex<JSON?>(nil)
        var last: JSON?
        for attempt in 1...2 {
            var context = SourceContext(
                job: 1, link: 0, attempt: attempt, owner: 1000, bodyPath: directory + "/body")
            context.saveCheckpoint = { json in
                checkpoint.withLock { $0 = json }
                return .succeeded(())
            }
            context.timeout = Self.timeout
            context.checkpoint = checkpoint.withLock { $0 }
            context.connections = Self.segments
            guard let parameters = try? SourceParameters(source, mode: .literal, limits: JobLimits()) else {
                throw Finding("The source is none: \(source)")
            }
            guard let outcome = library.start(parameters, context).wait(timeout: Self.longest) else {
                throw Finding("It did not end.")
            }
            switch outcome {
            case .success(let json): return json
            case .failure(let error as JobError):
                try Finding.unless(!error.message.isEmpty && Self.kinds.contains(error.kind), "It failed so: \(error)")
                last = nil
            case .failure(let error): throw Finding("It failed with an error of another type: \(error)")
            }
        }
        return last
    }

    /// The file of a successful download, without other files beside it; otherwise there must be no file, and this is
    /// nil.
    private func delivered(_ result: JSON?) throws(Finding) -> [UInt8]? {
        let path = downloads + "/file"
        let file = FileManager.default.contents(atPath: path).map { [UInt8]($0) }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: downloads)) ?? []
        for name in names { try? FileManager.default.removeItem(atPath: downloads + "/" + name) }
        guard let result else {
            try Finding.unless(file == nil, "The download failed and left a file.")
            return nil
        }
        guard let file else { throw Finding("The download succeeded and there is no file: \(result)") }
        let digest = Self.digest(of: file)
        try Finding.unless(
            result["size"]?.int == file.count && result["sha256"]?.string == digest,
            "The file has \(file.count) bytes and the digest \(digest): \(result)")
        try Finding.unless(names == ["file"], "The download succeeded and left \(names).")
        return file
    }

    /// A file exists only if the download succeeded, and matches its result and its checksum.
    private func check(_ answers: [[UInt8]], _ result: JSON?, _ expected: [UInt8]?) throws(Finding) {
        guard let file = try delivered(result) else { return }
        if let expected { try Finding.unless(file == expected, "The file is not what its checksum says.") }
        if answers.count == 1, let length = Self.plainLength(of: answers[0]) {
            try Finding.unless(
                file.count == length, "The file has \(file.count) of \(length) bytes: \(result ?? .null)")
        }
    }

    /// The length that a plain answer of status 200 declares.
    private static func plainLength(of answer: [UInt8]) -> Int? {
        guard let end = answer.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let head = String(decoding: answer[..<end.lowerBound], as: UTF8.self).lowercased()
        let lengths = head.split(separator: "\r\n").filter { $0.hasPrefix("content-length:") }
        // A line feed alone may end the head before.
        guard head.hasPrefix("http/1.1 200 "), !head.contains("encoding"), !head.contains(Character("\n")),
            lengths.count == 1
        else { return nil }
        return Int(lengths[0].dropFirst("content-length:".count).filter { $0 != " " })
    }
}
