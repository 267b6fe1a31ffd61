import Foundation
import JobModel
import JobProtocol
import Testing

/// One message of the protocol, as it was once sent.
struct MessageFixture: Sendable, CustomTestStringConvertible {
    let name: String
    let line: [UInt8]

    var testDescription: String { name }

    /// The messages in a directory, by name. Each is one line with its end.
    static func all(in directory: String) throws -> [MessageFixture] {
        let root = Bundle.module.bundleURL.appendingPathComponent("Fixtures/\(directory)")
        let files = try FileManager.default.contentsOfDirectory(at: root, includingPropertiesForKeys: nil)
        return try files.filter { $0.pathExtension == "json" }
            .sorted { $0.lastPathComponent < $1.lastPathComponent }
            .map { file in
                var framer = LineFramer(limit: 1 << 20)
                guard case .line(let line)? = framer.feed([UInt8](try Data(contentsOf: file))).first else {
                    throw CocoaError(.fileReadCorruptFile)
                }
                return MessageFixture(name: file.deletingPathExtension().lastPathComponent, line: line)
            }
    }
}

/// Every message of protocol version 1 is read for ever, and written as it was.
@Suite struct MessageFixtureTests {
    @Test func fixtures_coverTheProtocol() throws {
        let requests = try MessageFixture.all(in: "requests").flatMap { IncomingLine($0.line).requests }
        #expect(Set(requests.map(\.method)) == Set(MethodName.allCases.map(\.rawValue)))
        #expect(requests.count >= 23)
        #expect(try MessageFixture.all(in: "answers").count >= 15)
        #expect(try MessageFixture.all(in: "errors").count >= 14)
        #expect(try MessageFixture.all(in: "notifications").count >= 4)
    }

    @Test(arguments: try MessageFixture.all(in: "requests"))
    func request_isRead(_ fixture: MessageFixture) throws {
        let request = try #require(IncomingLine(fixture.line).requests.first)
        let method = try #require(MethodName(rawValue: request.method))
        #expect((request.id == nil) == (fixture.name == "notification"))
        #expect(IncomingLine(request.line).calls == IncomingLine(fixture.line).calls)
        guard method == .jobSubmit || method == .jobExplain else { return }
        var spec = request.params
        spec["watch"] = nil
        #expect(throws: Never.self) { try JobSpecReader.spec(.object(spec), limits: JobLimits()) }
    }

    @Test(arguments: try MessageFixture.all(in: "answers"))
    func answer_isRead_andWrittenAsItWas(_ fixture: MessageFixture) throws {
        guard case .answer(let id, .success(let result)) = try ServerMessage(fixture.line) else {
            Issue.record("no answer")
            return
        }
        #expect(Answer.success(id: id, result: result.utf8) == fixture.line)
    }

    @Test(arguments: try MessageFixture.all(in: "errors"))
    func error_isRead_andWrittenAsItWas(_ fixture: MessageFixture) throws {
        guard case .answer(let id, .failure(let error)) = try ServerMessage(fixture.line) else {
            Issue.record("no error")
            return
        }
        #expect(Answer.failure(id: id, error: error) == fixture.line)
        let code = try #require(ProtocolError.Code(rawValue: error.code))
        let hasOwnKind = fixture.name == "line-too-long"
        #expect(hasOwnKind || error.data["kind"] == code.kind.map(JSON.string))
        #expect(hasOwnKind || code.kind == nil || code.kind == fixture.name)
    }

    @Test(arguments: try MessageFixture.all(in: "notifications"))
    func notification_isRead_andWrittenAsItWas(_ fixture: MessageFixture) throws {
        guard case .notification(let method, let params) = try ServerMessage(fixture.line) else {
            Issue.record("no notification")
            return
        }
        let kind = try #require(JobNotification.Method(rawValue: method))
        let link = params["link"]?.int
        var body = JSONWriter()
        switch kind {
        case .state:
            let state = try #require(params["state"]?.string.flatMap(JobState.init(rawValue:)))
            body.raw(JobNotification.state(state, snapshot: try #require(params["snapshot"]).utf8))
        case .output:
            JobNotification.writeOutput(
                link: try #require(link), attempt: try #require(params["attempt"]?.int),
                size: Int64(try #require(params["size"]?.int)), to: &body)
        case .progress:
            let json = try #require(params["progress"])
            let progress = Progress(
                completed: Int64(try #require(json["completed"]?.int)), total: json["total"]?.int.map(Int64.init),
                unit: try #require(json["unit"]?.string.flatMap(Progress.Unit.init(rawValue:))),
                rate: json["rate"]?.double)
            JobNotification.writeProgress(
                link: try #require(link), links: try #require(params["links"]?.int), progress,
                coalesced: try #require(params["coalesced"]?.int), to: &body)
        }
        let head = JobNotification(kind, watch: try #require(params["watch"]?.string))
        let line = head.line(
            job: JobID(try #require(params["job"]?.int)), seq: params["seq"]?.int, body: body.bytes)
        #expect(line == fixture.line + [UInt8(ascii: "\n")])
    }
}

extension JobNotification {
    /// A line of its own, its end included.
    func line(job: JobID, seq: Int?, body: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: room + body.count) { line, count in
            guard let start = UnsafeMutableRawPointer(line.baseAddress) else { return }
            count = body.withUnsafeBytes { write(job: job, seq: seq, body: $0, to: start) } - start
        }
    }
}
