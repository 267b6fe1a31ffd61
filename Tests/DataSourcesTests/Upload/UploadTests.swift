@testable import DataSources
import DeferredKit
import Foundation
import JobModel
import NIOCore
import NIOEmbedded
import Synchronization
import SystemPackage
import TestOrigin
import Testing

/// What an upload sends, and what becomes of it when the server answers.
@Suite struct UploadTests {
    /// More than a block of the reader and a piece of the connection, and no multiple of either.
    static let content = Workbench.bytes(700_001)

    static func digest(_ bytes: [UInt8]) -> String { FileDigest.sha256(of: bytes) }

    func upload(_ origin: ScriptedOrigin, _ path: String = "x", _ more: [String: JSON] = [:]) -> JSON {
        .source("upload", origin.url("/store"), more.merging(["path": .string(path)]) { own, _ in own })
    }

    static func answer(
        _ status: String = "201 Created", _ fields: [(name: String, value: String)] = []
    ) -> [OriginStep] {
        [.head(status, fields + [("Content-Length", "0")])]
    }

    // MARK: What is sent

    @Test(arguments: ["PUT", "POST", "PATCH"], [0, 1, 262_144, 700_001])
    func file_arrivesWhole_withItsLengthAndHeaders(method: String, size: Int) async throws {
        let content = Array(Self.content.prefix(size))
        try await Workbench.run(
            against: { _, _ in Self.answer("201 Created", [("Location", "/store/1")]) }
        ) { origin, bench in
            try bench.write(content, to: bench.downloads + "/deep/x")
            let deferred = try bench.start(
                upload(origin, "deep/x", ["method": .string(method), "headers": ["Content-Type": "text/x"]]))
            let progress = Mutex<[ProgressUpdate]>([])
            deferred.onProgress { update in progress.withLock { $0.append(update) } }
            let result = try await deferred.get()
            let request = try #require(origin.log.last("/store"))
            #expect(request.method == method)
            #expect(request.body == content)
            #expect(request.headers["content-length"] == "\(size)")
            #expect(request.headers["content-type"] == "text/x")
            #expect(
                result == [
                    "status": 201, "headers": ["location": "/store/1", "content-length": "0"],
                    "size": JSON(size), "sha256": .string(Self.digest(content)), "attempts": 1,
                    "url": .string(origin.url("/store")), "body": "",
                ])
            if size > 0 {
                #expect(progress.withLock { $0.last?.completed } == Int64(size))
                #expect(progress.withLock { $0.allSatisfy { $0.total == Int64(size) } })
            }
        }
    }

    @Test(arguments: [0, 1, 700_001]) func form_hasFieldsBeforeFile(size: Int) async throws {
        let content = Array(Self.content.prefix(size))
        let form: JSON = ["field": "a\"b", "filename": "x\r\ny", "fields": ["one": "1", "two": "2"]]
        try await Workbench.run(against: { _, _ in Self.answer() }) { origin, bench in
            try bench.write(content, to: bench.downloads + "/x")
            let sum = JSON.string("sha256:" + Self.digest(content))
            let result = try await bench.result(upload(origin, "x", ["multipart": form, "checksum": sum]))
            #expect(result["size"] == JSON(size) && result["sha256"]?.string == Self.digest(content))
            let request = try #require(origin.log.last("/store"))
            #expect(request.method == "POST")
            let type = try #require(request.headers["content-type"])
            #expect(type.hasPrefix("multipart/form-data; boundary="))
            let boundary = "--" + type.dropFirst("multipart/form-data; boundary=".count)
            let head = """
                \(boundary)
                Content-Disposition: form-data; name="one"

                1
                \(boundary)
                Content-Disposition: form-data; name="two"

                2
                \(boundary)
                Content-Disposition: form-data; name="a%22b"; filename="x%0D%0Ay"
                Content-Type: application/octet-stream


                """.replacing("\n", with: "\r\n")
            #expect(request.body == Array(head.utf8) + content + Array("\r\n\(boundary)--\r\n".utf8))
            let wrong = JSON.string("md5:" + String(repeating: "0", count: 32))
            let error = try await bench.failure(upload(origin, "x", ["multipart": form, "checksum": wrong]))
            #expect(error.kind == .checksum)
            _ = try await bench.result(upload(origin, "x", ["multipart": ["field": "f"], "method": "PUT"]))
            let last = try #require(origin.log.last("/store"))
            #expect(last.method == "PUT")
            #expect(String(decoding: last.body.prefix(200), as: UTF8.self).contains("name=\"f\"; filename=\"x\""))
        }
    }

    @Test(arguments: ["upload", "url", "json"]) func answer_isInError(type: String) async throws {
        let long = String(repeating: "é", count: 3000)
        let answers: [(body: [UInt8], told: String, encoding: JSON?)] = [
            (Array(#"{"reason":"full"}"#.utf8), #"{"reason":"full"}"#, nil), ([0xFF, 0], "/wA=", "base64"),
            // The last character would be cut.
            (Array(("x" + long).utf8), "x" + String(repeating: "é", count: 2047), nil),
        ]
        for (body, told, encoding) in answers {
            try await Workbench.run(against: { _, _ in
                [.head("422 No", [("Content-Length", "\(body.count)")]), .send(body)]
            }) { origin, bench in
                try bench.write([1], to: bench.downloads + "/x")
                let error = try await bench.failure(
                    type == "upload" ? upload(origin) : .source(type, origin.url("/store")))
                #expect(error.kind == .http)
                #expect(error.http?["body"]?.string == told)
                #expect(error.json["http"]?["encoding"] == encoding)
                #expect(JobError(json: error.json).http == error.http)
            }
        }
    }

    @Test func answer_isInResult_orSpilled() async throws {
        try await Workbench.run(
            against: { request, _ in
                let body = request.target == "/store" ? #"{"id":7}"# : String(repeating: "x", count: 200_000)
                return [.head("201 Created", [("Content-Length", "\(body.utf8.count)")]), .send(body)]
            }
        ) { origin, bench in
            try bench.write([1], to: bench.downloads + "/x")
            let result = try await bench.result(upload(origin))
            #expect(result["body"] == #"{"id":7}"#)
            let long = try await bench.result(.source("upload", origin.url("/long"), ["path": "x"]))
            #expect(long["body"] == nil && long["spilled"] == true)
            #expect(bench.bytes(of: bench.bodyPath)?.count == 200_000)
        }
    }

    @Test func absolutePath_isRead_belowARootOnly() async throws {
        try await Workbench.run(against: { _, _ in Self.answer() }) { origin, bench in
            try bench.write([1, 2], to: bench.root + "/x")
            _ = try await bench.result(upload(origin, bench.root + "/x"))
            #expect(origin.log.last("/store")?.body == [1, 2])
            try bench.write([3], to: bench.directory + "/x")
            for path in [bench.directory + "/x", "../x", "/etc/hostname"] {
                #expect(try await bench.failure(upload(origin, path)).kind == .policy, "\(path)")
            }
            symlink(bench.directory + "/x", bench.root + "/link")
            mkdir(bench.downloads, 0o755)
            symlink(bench.directory, bench.root + "/way")
            #expect(try await bench.failure(upload(origin, bench.root + "/way/x")).kind == .policy)
            #expect(try await bench.failure(upload(origin, bench.root + "/link")).kind == .invalid)
            #expect(origin.log.count() == 1)
        }
    }

    @Test func largeFile_neverStandsInMemory() async throws {
        let read = Mutex<Int64>(0)
        var files = FileOperations.real
        files.readAt = { file, offset, buffer throws(Errno) in
            read.withLock { $0 = max($0, offset + Int64(buffer.count)) }
            return try FileOperations.real.readAt(file, offset, buffer)
        }
        try await Workbench.run(
            against: { _, _ in [.stopReading, .hold] }, readsBodies: false, files: files
        ) { origin, bench in
            try bench.write([], to: bench.downloads + "/x")
            truncate(bench.downloads + "/x", 1 << 40)
            let deferred = try bench.start(upload(origin))
            await origin.log.reaches(1)
            await bench.library.shutdown()
            #expect(try await bench.failure(of: deferred).kind == .cancelled)
            // What the sockets hold, and two blocks: nothing like the file.
            #expect(read.withLock(\.self) < 64 << 20)
        }
    }

    // MARK: What is no file to send

    @Test func missingFile_isStorage_andWhatIsNoFileIsInvalid() async throws {
        try await Workbench.run(against: { _, _ in Self.answer() }) { origin, bench in
            try bench.write([], to: bench.downloads + "/folder/x")
            mkfifo(bench.downloads + "/fifo", 0o644)
            for path in ["absent", "folder/absent", "absent/x"] {
                let error = try await bench.failure(upload(origin, path))
                #expect(error.kind == .storage && !error.isRetryable, "\(path): \(error)")
            }
            for path in ["fifo", "folder"] {
                #expect(try await bench.failure(upload(origin, path)).kind == .invalid, "\(path)")
            }
            #expect(origin.log.count() == 0)
        }
    }

    @Test(arguments: [0, 5, 700_001]) func wrongChecksum_isNoticed_beforeTheLastByteIsSent(size: Int) async throws {
        try await Workbench.run(against: { _, _ in Self.answer() }) { origin, bench in
            try bench.write(Array(Self.content.prefix(size)), to: bench.downloads + "/x")
            let wrong = "sha256:" + String(repeating: "0", count: 64)
            let error = try await bench.failure(upload(origin, "x", ["checksum": .string(wrong)]))
            #expect(error.kind == .checksum)
            // The origin logs a request once all of its body is there.
            #expect(origin.log.count() == 0)
            let right = "sha256:" + Self.digest(Array(Self.content.prefix(size))).uppercased()
            _ = try await bench.result(upload(origin, "x", ["checksum": .string(right)]))
        }
    }

    enum Change: CaseIterable {
        case longer, shorter, touched, replaced, removed
    }

    @Test(arguments: Change.allCases) func changedFile_isNetwork_beforeTheLastByteIsSent(change: Change) async throws {
        let path = Mutex("")
        var files = FileOperations.real
        files.readAt = { file, offset, buffer throws(Errno) in
            let count = try FileOperations.real.readAt(file, offset, buffer)
            // Once, after the first block.
            let path = path.withLock { path in
                defer { path = "" }
                return path
            }
            guard !path.isEmpty else { return count }
            switch change {
            case .longer: truncate(path, off_t(Self.content.count + 1))
            case .shorter: truncate(path, off_t(Self.content.count - 1))
            case .touched: utimes(path, [timeval(tv_sec: 1, tv_usec: 0), timeval(tv_sec: 1, tv_usec: 0)])
            case .replaced: rename(path + ".new", path)
            case .removed: unlink(path)
            }
            return count
        }
        try await Workbench.run(against: { _, _ in Self.answer() }, files: files) { origin, bench in
            let name = bench.downloads + "/x"
            try bench.write(Self.content, to: name)
            try bench.write(Self.content, to: name + ".new")
            path.withLock { $0 = name }
            let error = try await bench.failure(upload(origin))
            #expect(error.kind == .network && error.isRetryable, "\(error)")
            #expect(origin.log.count() == 0)
        }
    }

    // MARK: How the server answers

    @Test(arguments: [301, 302, 303]) func redirectToAnotherRequest_isHTTP(status: Int) async throws {
        try await Workbench.run(
            against: { _, _ in Self.answer("\(status) Found", [("Location", "/other")]) }
        ) { origin, bench in
            try bench.write(Self.content, to: bench.downloads + "/x")
            let error = try await bench.failure(upload(origin))
            #expect(error.kind == .http && error.http?["status"]?.int == status && !error.isRetryable)
            #expect(origin.log.entries.map(\.path) == ["/store"])
        }
    }

    @Test(arguments: [307, 308], [true, false])
    func redirectOfTheSameRequest_sendsItAgain_withoutCredentialsForOthers(status: Int, isSame: Bool) async throws {
        try await ScriptedOrigin.run({ _, _ in Self.answer() }) { other in
            try await Workbench.run(against: { request, _ in
                guard request.path == "/store" else { return Self.answer() }
                return Self.answer("\(status) Again", [("Location", isSame ? "/other" : other.url("/other"))])
            }) { origin, bench in
                try bench.write(Self.content, to: bench.downloads + "/x")
                let result = try await bench.result(
                    upload(origin, "x", ["method": "POST", "headers": ["Authorization": "secret"]]))
                let target = isSame ? origin : other
                let request = try #require(target.log.last("/other"))
                #expect(request.method == "POST")
                #expect(request.body == Self.content)
                #expect(request.headers["authorization"] == (isSame ? "secret" : nil))
                #expect(result["url"]?.string == target.url("/other"))
                #expect(result["sha256"]?.string == Self.digest(Self.content))
            }
        }
    }

    @Test func form_hasTheLargestSize_whereItsFileHas() throws {
        let source: JSON = ["type": "upload", "url": "http://x/", "path": "x", "multipart": ["field": "f"]]
        let parameters = try SourceParameters(source, mode: .literal, limits: JobLimits())
        let form = if case .upload(let spec) = parameters { spec.form } else { UploadSpec.Form?.none }
        let frame = MultipartFrame(try #require(form), filename: "x")
        #expect(frame.size(with: 1) == Int64(frame.before.count + 1 + frame.after.count))
        #expect(frame.size(with: .max) == .max)
    }
}
