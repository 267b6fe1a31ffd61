import DataSources
import Foundation
import JobModel
import Testing
import TestOrigin

/// The files in `RealServers`: each has a sentence, `curl:` with what curl 7.88 made of the answer (`curl -L
/// --compressed`), `deferd:` with what deferd makes of it if that is something else, `method:` unless it is GET, and
/// below a line of hyphens the answer, whose line ends in the file do not count.
@Suite struct RealServerTests {
    struct Answer: CustomTestStringConvertible {
        let testDescription: String
        let method: String
        /// Status and body, or the kind of the error, and whether it is retryable.
        let expected: String
        let bytes: [UInt8]

        init(contentsOf file: URL) throws {
            let text = try String(contentsOf: file, encoding: .utf8)
            let mark = try #require(text.range(of: "\n---\n"))
            let lines = text[..<mark.lowerBound].split(separator: "\n")
            func value(_ name: String) -> String? {
                lines.first { $0.hasPrefix(name + ": ") }.map { String($0.dropFirst(name.count + 2)) }
            }
            testDescription = file.deletingPathExtension().lastPathComponent
            method = value("method") ?? "GET"
            expected = try #require(value("deferd") ?? value("curl"))
            bytes = Self.bytes(text[mark.upperBound...])
        }

        private static func bytes(_ text: Substring) -> [UInt8] {
            var (rest, bytes) = (text.utf8.filter { $0 != 0x0A }[...], [UInt8]())
            while let byte = rest.popFirst() {
                guard byte == UInt8(ascii: "\\"), let letter = rest.popFirst() else {
                    bytes.append(byte)
                    continue
                }
                switch letter {
                case UInt8(ascii: "r"): bytes.append(0x0D)
                case UInt8(ascii: "n"): bytes.append(0x0A)
                case UInt8(ascii: "t"): bytes.append(0x09)
                case UInt8(ascii: "x"):
                    bytes.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                    rest = rest.dropFirst(2)
                default: bytes.append(letter)
                }
            }
            return bytes
        }
    }

    private static func answers() throws -> [Answer] {
        let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "RealServers")
        let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
        return try files.sorted { $0.path < $1.path }.map(Answer.init)
    }

    @Test(arguments: try answers()) func answer_isReadAsItsFileSays(_ answer: Answer) async throws {
        let script: ScriptedOrigin.Script = { request, _ in
            if request.path == "/x" { return [.send(answer.bytes), .close] }
            return [.head("200 OK", [("Content-Length", "\(request.target.utf8.count)")]), .send(request.target)]
        }
        try await Workbench.run(against: script) { origin, bench in
            let outcome: String
            do {
                let result = try await bench.result(
                    .source("url", origin.url("/x"), ["method": .string(answer.method)]))
                let body = result["body"]?.string ?? ""
                outcome = "\(result["status"]?.int ?? 0)" + (body.isEmpty ? "" : " " + body)
            } catch let error as JobError {
                outcome = error.kind.rawValue + (error.isRetryable ? ", retryable" : "")
                #expect(error.message.hasSuffix("."))
            }
            #expect(outcome == answer.expected)
        }
    }
}
