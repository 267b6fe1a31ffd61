import DeferredKit
import JobModel
import SystemPackage

/// One attempt at a download, from its path to its result.
///
/// A class, so that its asynchronous steps share it instead of copying it.
final class DownloadAttempt: Sendable {
    let spec: DownloadSpec
    let transfer: Transfer
    private let directories: DownloadDirectories
    /// The response by which the server named the file.
    let opened = Handover<(source: String, response: IncomingResponse)>()

    private var context: SourceContext { transfer.context }

    init(_ spec: DownloadSpec, below directories: DownloadDirectories, _ transfer: Transfer) {
        self.spec = spec
        self.directories = directories
        self.transfer = transfer
    }

    /// The number of connections to use at once, if the server gives parts of the file.
    var connections: Int { max(1, min(spec.segments, context.connections)) }

    var isNamedByServer: Bool { spec.path.hasSuffix("/") }

    func run() async throws(JobError) -> JSON {
        defer { opened.take()?.response.close() }
        let checkpoint = DownloadCheckpoint(context.checkpoint)
        let (path, directory, hasPart) = try await begin(checkpoint)
        // What an earlier run of this attempt, before a crash of the daemon, has brought.
        if let result = await resultOfEarlierRun(path, in: directory) {
            if let checkpoint { await discardPart(of: checkpoint) }
            return result
        }
        if hasPart, spec.exists != .rename { try await checkUnfinished(path) }
        let target = try await onFileThread { [self] _ throws(JobError) in
            try DownloadTarget(
                path, in: directory, renaming: spec.exists == .rename, preferred: checkpoint?.name, transfer)
        }
        let outcome: Result<JSON, JobError> = await withTaskCancellationHandler {
            do throws(JobError) {
                // An earlier attempt may have written to another path.
                if let checkpoint, !checkpoint.isAbout(target) { await discardPart(of: checkpoint) }
                let result = try await run(target, checkpoint)
                target.release()
                // The result may come without a transfer.
                if let checkpoint, checkpoint.isAbout(target) { await discardPart(of: checkpoint) }
                return .success(result)
            } catch {
                // This does nothing if the `.part` stays for a retry.
                await transfer.userFiles.run { target.remove() }
                return .failure(error)
            }
        } onCancel: {
            // This may wait for the file system.
            target.remove()
        }
        return try outcome.get()
    }

    private func begin(
        _ checkpoint: DownloadCheckpoint?
    ) async throws(JobError) -> (path: DownloadPath, directory: OpenFile, hasPart: Bool) {
        try transfer.control.check()
        var path = try directories.path(
            spec.path, owner: context.owner, groups: context.groups, mayBeDirectory: true)
        // The file system may keep an earlier run at work after the engine has given it up.
        while let end = transfer.shared.reservations.end(of: context.job, below: path.key("")) {
            try await transfer.control.wait { promise in end.upon { _ in promise.succeed(()) } }
        }
        if path.name.isEmpty {
            let earlier = checkpoint.flatMap { $0.directory == path.directory && $0.isFrom(spec) ? $0.name : nil }
            path.name = if let earlier { earlier } else { try await nameFromServer() }
        }
        return try await onFileThread { [path] (files) throws(JobError) in
            let directory = try TargetDirectory.opened(path, for: [.write, .execute], makingMissing: true, files)
            let part = try? files.status(directory.descriptor, DownloadPath.partName(of: path.name))
            return (path, directory, part != nil)
        }
    }

    /// Asks for the file, from the URL or a mirror, and returns the name that its server gives it.
    private func nameFromServer() async throws(JobError) -> String {
        var failures: [JobError] = []
        for source in spec.sources {
            do throws(JobError) {
                let response = try await open(transfer.rules.access.url(source))
                opened.put((source, response))
                if response.isSuccess { return ServerName.of(response) }
                await response.discard()
                throw response.statusError
            } catch {
                if transfer.control.isInterrupted || Task.isCancelled { throw error }
                failures.append(error)
            }
        }
        throw DownloadTransfer.summary(of: failures)
    }

    private func onFileThread<Value: Sendable>(
        _ body: @escaping @Sendable (FileOperations) throws(JobError) -> Value
    ) async throws(JobError) -> Value {
        try await transfer.userFiles.run { [files = transfer.files] () throws(JobError) in try body(files) }
    }

    private func discardPart(of checkpoint: DownloadCheckpoint) async {
        await transfer.shared.discardPart(of: checkpoint, owner: context.owner, below: directories)
    }

    /// The most unfinished transfers among which the one that resumes a file is looked for.
    private static let mostUnfinished = 10_000

    /// Throws if another job will write to the file in its retry.
    private func checkUnfinished(_ path: DownloadPath) async throws(JobError) {
        // A store that fails is reported by the engine.
        for other in (try? await context.unfinishedTransfers(Self.mostUnfinished).get()) ?? []
        where other.job != context.job {
            let target = DownloadCheckpoint(other.checkpoint).flatMap {
                try? $0.path(of: other.owner, below: directories)
            }
            guard let target, target.key(target.name) == path.key(path.name) else { continue }
            let writer = FileReservations.Writer(job: other.job, owner: other.owner)
            throw JobError(beingWritten: path.absolute(), by: writer, to: context.owner)
        }
    }

    private func run(_ target: DownloadTarget, _ checkpoint: DownloadCheckpoint?) async throws(JobError) -> JSON {
        var record: DownloadRecord?
        if let existing = try await onFileThread({ _ throws(JobError) in try target.existing() }) {
            if spec.exists == .skip, !existing.isDirectory { return try await self.existing(target) }
            record = try await validated(existing, target)
        }
        try await onFileThread { _ throws(JobError) in try target.checkRoomToBegin() }
        let fetch = DownloadTransfer(attempt: self, target: target, checkpoint: checkpoint)
        switch try await fetch.run(unlessUnchanged: record) {
        case .unchanged(let url): return try await existing(target, status: 304, url: url.description)
        case .received(let result, let source): return try await finish(target, result, from: source)
        }
    }

    func open(
        _ url: RequestURL, _ fields: [(name: String, value: String?)] = [], isPart: Bool = false
    ) async throws(JobError) -> IncomingResponse {
        var request = OutgoingRequest(url, headers: spec.headers, coding: .asSent, idleTimeout: spec.idleTimeout)
        // A mirror may belong to another party.
        request.removeCredentials(unlessFor: RequestURL(spec.url)?.origin)
        for case (let name, let value?) in fields { request.set(name, value) }
        request.isPart = isPart
        return try await transfer.open(request)
    }

    // MARK: - Existing files

    /// Throws if the existing file forbids the download; returns its record if it is to be validated.
    private func validated(
        _ existing: FileOperations.Status, _ target: DownloadTarget
    ) async throws(JobError) -> DownloadRecord? {
        if existing.isDirectory {
            throw JobError(.exists, "\"\(target.absolutePath)\" is a directory; give the path of a file.")
        }
        switch spec.exists {
        case .fail:
            throw JobError(
                .exists,
                "\"\(target.absolutePath)\" already exists; give another path, or say what to do with \"exists\".")
        case .validate, .replace:
            try await onFileThread { _ throws(JobError) in try target.checkReplacing(target.name) }
            guard spec.exists == .validate, existing.isRegular else { return nil }
            let file = try await onFileThread { _ throws(JobError) in try target.openExisting() }
            return await remembered(target.path, target.name, file.status)
        case .rename, .skip: return nil
        }
    }

    /// The result if this job wrote the file, but the result was not stored, as the daemon ended or the attempt was given
    /// up. A retry by hand downloads it again.
    private func resultOfEarlierRun(_ path: DownloadPath, in directory: OpenFile) async -> JSON? {
        let isAgain = context.restarts > 0 || context.attempt > 1
        guard isAgain, spec.exists != .replace, spec.exists != .validate else { return nil }
        for count in 0...(spec.exists == .rename ? 8 : 0) {
            let name = path.alternative(count)
            let status = await transfer.userFiles.run { [files = transfer.files] in
                // An error occurs again when the target is opened, and is reported there.
                try? files.status(directory.descriptor, name)
            }
            guard let status else { return nil }
            if let record = await remembered(path, name, status), record.isOfLink(in: context) { return record.result }
        }
        return nil
    }

    /// The last download of this owner to the path, if the file with this status is still the downloaded one.
    private func remembered(
        _ path: DownloadPath, _ name: String, _ existing: FileOperations.Status
    ) async -> DownloadRecord? {
        // A store that fails is reported by the engine.
        guard let json = try? await context.lastDownload(path.absolute(name)).get() else { return nil }
        let record = DownloadRecord(json: json)
        return record.isAbout(existing) && (!path.isPrivate || record.isOf(context.owner)) ? record : nil
    }

    /// The result for the existing file; throws if it is not the wanted one.
    private func existing(
        _ target: DownloadTarget, status: Int? = nil, url: String? = nil
    ) async throws(JobError) -> JSON {
        // Callers who may not read the file learn nothing about it, not even from the record.
        let file = try await onFileThread { _ throws(JobError) in try target.openExisting() }
        let record = await remembered(target.path, target.name, file.status)
        let (digest, mismatch): (String, String?)
        if let known = record?.sha256, spec.checksum?.algorithm ?? .sha256 == .sha256 {
            (digest, mismatch) = (known, spec.checksum.flatMap { FileDigest.mismatch(known, $0) })
        } else {
            let hashed = FileDigest(for: spec.checksum)
            try await transfer.hash(file.descriptor, file.path, 0..<file.status.size, into: hashed)
            (digest, mismatch) = (hashed.sha256, hashed.mismatch)
        }
        if let mismatch {
            throw JobError(
                .checksum, "\"\(target.absolutePath)\" \(mismatch); replace it with exists: \"replace\".")
        }
        return .object(
            result(
                path: target.absolutePath, size: file.status.size, status: status, etag: record?.etag,
                lastModified: record?.lastModified, sha256: digest, url: url ?? Masking.masked(url: spec.url)))
    }

    func result(
        path: String, size: Int64, status: Int?, etag: String?, lastModified: String?, sha256: String,
        resumedFrom: Int64 = 0, url: String
    ) -> JSONObject {
        [
            "path": path.json, "size": size.json, "status": status?.json ?? .null, "etag": etag?.json ?? .null,
            "lastModified": lastModified?.json ?? .null, "sha256": sha256.json, "resumedFrom": resumedFrom.json,
            "attempts": context.attempt.json, "url": url.json,
        ]
    }

    // MARK: - The complete file

    /// Gives the complete file, which is on stable storage, its name.
    private func finish(
        _ target: DownloadTarget, _ result: JSONObject, from source: String
    ) async throws(JobError) -> JSON {
        var result = result
        let status = try await onFileThread { (files) throws(JobError) in
            try JobError.naming(target.partPath, "looked at") { () throws(Errno) in
                try files.statusOfOpen(target.descriptor)
            }
        }
        let replaces = spec.exists == .replace || spec.exists == .validate
        for count in 0...(spec.exists == .rename ? DownloadTarget.alternatives : 0) {
            let name = count == 0 ? target.name : target.path.alternative(count)
            // The record of an existing file must stay.
            if !replaces, try await onFileThread({ _ throws(JobError) in try target.existing(name) != nil }) {
                continue
            }
            let path = target.path.absolute(name)
            result["path"] = .string(path)
            // Stored before the rename: after a crash in between, the job must recognize its own file. A store that
            // fails is reported by the engine.
            let record = DownloadRecord(result, of: context, from: Masking.masked(url: source), in: status)
            _ = try? await context.recordDownload(path, record.json).get()
            let isDone = try await onFileThread { _ throws(JobError) in
                try target.finish(as: name, replacing: replaces)
            }
            if isDone { return .object(result) }
        }
        if spec.exists == .skip {
            await transfer.userFiles.run { target.remove() }
            if try await onFileThread({ _ throws(JobError) in try target.existing() }) != nil {
                return try await existing(target)
            }
        }
        throw JobError(
            .exists,
            "\"\(target.absolutePath)\" appeared while it was being downloaded; give another path, or replace it.")
    }
}
