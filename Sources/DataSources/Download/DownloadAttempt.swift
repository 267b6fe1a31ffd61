import SystemPackage
import DeferredKit
import JobModel
import Logging
import Synchronization

/// One attempt at a download, from its path to its result; an object, so that its asynchronous steps share it instead
/// of copying it.
final class DownloadAttempt: Sendable {
    let spec: DownloadSpec
    let context: SourceContext
    let services: DownloadServices
    let handle: TransferHandle
    /// When to look again how much room there is.
    private let nextLook = Mutex(DownloadAttempt.roomInterval)

    init(spec: DownloadSpec, context: SourceContext, services: DownloadServices, handle: TransferHandle) {
        self.spec = spec
        self.context = context
        self.services = services
        self.handle = handle
    }

    /// How many it has at once, where the server gives parts of a file.
    var connections: Int { max(1, min(spec.segments, context.connections)) }

    func run() async throws(JobError) -> JSON {
        // A reservation that an earlier attempt left is for this attempt only.
        defer { services.registry.endWaiting(of: context.job, before: context.attempt) }
        guard !Task.isCancelled else {
            throw JobError(.cancelled, "The download was cancelled before it began; start it again if it is needed.")
        }
        let path = try services.directories.path(spec.path, owner: context.owner, groups: context.groups)
        let checkpoint = DownloadCheckpoint(context.checkpoint)
        let directory = try await services.queue.run { [services] () throws(JobError) in
            try TargetDirectory.existing(path, files: services.files)
        }
        await endForgottenWait(for: path)
        if let directory, let result = await resultOfEarlierRun(path, in: directory) { return result }
        let target = try await services.queue.run { [self] () throws(JobError) in
            try DownloadTarget(
                path, in: directory, renaming: spec.exists == .rename, preferred: checkpoint?.name,
                writer: FileReservations.Writer(job: context.job, owner: context.owner, link: context.link),
                services)
        }
        let outcome: Result<JSON, JobError> = await withTaskCancellationHandler {
            do throws(JobError) {
                // What was kept under another name is of no use any more.
                if let checkpoint, !checkpoint.isAbout(target) {
                    await services.discardPart(of: checkpoint, owner: context.owner)
                }
                let result = try await run(target, checkpoint)
                target.release()
                // It may have come without a transfer.
                if let checkpoint, checkpoint.isAbout(target) {
                    await services.discardPart(of: checkpoint, owner: context.owner)
                }
                return .success(result)
            } catch {
                // This does nothing where the `.part` was kept for a retry.
                await services.queue.run { target.remove() }
                return .failure(error)
            }
        } onCancel: {
            // This may wait for the file system.
            target.remove()
        }
        return try outcome.get()
    }

    /// Frees a file that is kept for another job, where that has ended without running again.
    private func endForgottenWait(for path: DownloadPath) async {
        guard let other = services.registry.waiting(for: path.key(path.name), besides: context.job),
            await !context.isUnfinished(other.job, other.link)
        else { return }
        services.registry.endWaiting(of: other.job)
    }

    private func run(_ target: DownloadTarget, _ checkpoint: DownloadCheckpoint?) async throws(JobError) -> JSON {
        switch try await precedence(over: target) {
        case .result(let result): return result
        case .transfer(unlessUnchanged: let record):
            try await checkRoom(for: target)
            let transfer = DownloadTransfer(attempt: self, target: target, checkpoint: checkpoint)
            switch try await transfer.run(unlessUnchanged: record) {
            case .unchanged(let record, let url):
                return try result(
                    of: target, record.sha256 ?? "", size: record.size, record, status: 304, url: url.description)
            case .received(let result, let source): return try await finished(target, result, from: source)
            }
        }
    }

    /// Puts the download off where its disk has little room left.
    private func checkRoom(for target: DownloadTarget) async throws(JobError) {
        let minimum = Int64(services.minimumFree)
        guard minimum > 0 else { return }
        let free = await services.queue.run { target.freeBytes }
        guard let free, free < minimum else { return }
        throw .withoutRoom(
            "\"\(target.path.directory)\" has \(free) bytes free, and downloads wait below \(minimum); make room.")
    }

    /// Bytes that a download may write before it looks again how much room there is.
    private static let roomInterval: Int64 = 1 << 20

    /// Ends a running download where its disk has less than half of that room, so that it does not take the rest from all
    /// others. What it wrote goes, which makes room again. `count` is of the bytes that are there.
    func checkRoomForMore(of target: DownloadTarget, at count: Int64) async throws(JobError) {
        let isDue = nextLook.withLock { next in
            // Fewer than there were are of another server.
            guard count >= next || count < next - Self.roomInterval else { return false }
            next = count.saturatingAdding(Self.roomInterval)
            return true
        }
        guard isDue else { return }
        let minimum = Int64(services.minimumFree / 2)
        guard minimum > 0, let free = await services.queue.run({ target.freeBytes }), free < minimum else { return }
        throw JobError(
            .storage,
            "\"\(target.path.directory)\" has \(free) bytes free, and downloads end below \(minimum); make room.",
            retryable: true)
    }

    /// Asks for the file, or part of it.
    func open(
        _ url: RequestURL, _ fields: [(name: String, value: String?)] = [], isPart: Bool = false
    ) async throws(JobError) -> IncomingResponse {
        var request = OutgoingRequest(
            url, headers: spec.headers, coding: .asSent, userAgent: services.userAgent)
        for case (let name, let value?) in fields { request.set(name, value) }
        request.isPart = isPart
        return try await services.transport.open(request, handle)
    }

    // MARK: What is there already

    /// What to do about a file that is there already. Indirect, as each step that awaits one reserves stack for the
    /// whole value.
    private indirect enum Precedence {
        case result(JSON)
        case transfer(unlessUnchanged: DownloadRecord?)
    }

    private func precedence(over target: DownloadTarget) async throws(JobError) -> Precedence {
        let existing = try await services.queue.run { () throws(JobError) in try target.existing() }
        guard let existing else { return .transfer(unlessUnchanged: nil) }
        if existing.isDirectory {
            throw JobError(.exists, "\"\(target.absolutePath)\" is a directory; give the path of a file.")
        }
        switch spec.exists {
        case .fail:
            throw JobError(
                .exists,
                "\"\(target.absolutePath)\" is there already; give another path, or say what to do with \"exists\"."
            )
        case .skip: return .result(try await skipped(target))
        case .validate, .replace:
            try await services.queue.run { [name = target.name] () throws(JobError) in try target.checkReplacing(name) }
            // What is no ordinary file is replaced like any other that was not downloaded.
            guard spec.exists == .validate, existing.isRegular else { return .transfer(unlessUnchanged: nil) }
            let file = try await services.queue.run { () throws(JobError) in try target.openExisting() }
            return .transfer(unlessUnchanged: await remembered(target.path, target.name, file.status))
        case .rename: return .transfer(unlessUnchanged: nil)
        }
    }

    /// The result where this very job put the file there, under the path's name or an alternative, but the daemon ended before
    /// that was stored.
    private func resultOfEarlierRun(_ path: DownloadPath, in directory: OpenDirectory) async -> JSON? {
        guard spec.exists != .replace, spec.exists != .validate else { return nil }
        for count in 0...(spec.exists == .rename ? 8 : 0) {
            let name = count == 0 ? path.name : path.alternative(count)
            let status = await services.queue.run { [services] in
                // An error here shows again when the target is opened, and is reported there.
                try? services.files.status(directory.descriptor, name)
            }
            guard let status else { return nil }
            let record = await remembered(path, name, status)
            if let record, record.job == context.job, record.link == context.link { return record.result }
        }
        return nil
    }

    /// What this owner's last download to the path was, where it is still the file with this status. In a user's own
    /// instance there is only one owner.
    private func remembered(
        _ path: DownloadPath, _ name: String, _ existing: FileOperations.Status
    ) async -> DownloadRecord? {
        let isPrivate = path.isPrivate
        let path = path.absolute(name)
        do {
            guard let record = DownloadRecord(try await context.lastDownload(path).get()), record.isAbout(existing),
                !isPrivate || record.owner == context.owner
            else { return nil }
            return record
        } catch {
            services.logger.warning(
                "The last download could not be looked up.", metadata: ["path": "\(path)", "error": "\(error)"])
            return nil
        }
    }

    private func skipped(_ target: DownloadTarget) async throws(JobError) -> JSON {
        // A caller who may not read the file learns nothing about it, not from the stored record either.
        let file = try await services.queue.run { () throws(JobError) in try target.openExisting() }
        let record = await remembered(target.path, target.name, file.status)
        let size = file.status.size
        let digest: String
        if let known = record?.sha256 {
            digest = known
        } else {
            digest = try await FileHash.of(file.descriptor, file.path, 0..<size, services, handle.control).hexadecimal
        }
        return try result(of: target, digest, size: size, record, url: Masking.masked(url: spec.url))
    }

    /// The result where the file stays as it is.
    private func result(
        of target: DownloadTarget, _ digest: String, size: Int64, _ record: DownloadRecord?, status: Int? = nil,
        url: String
    ) throws(JobError) -> JSON {
        if let wanted = spec.sha256, wanted != digest {
            throw JobError(
                .checksum,
                "\"\(target.absolutePath)\" has the SHA-256 \(digest) instead of \(wanted); replace it with exists: \"replace\"."
            )
        }
        return DownloadResult(
            path: target.absolutePath, size: size, status: status, etag: record?.etag,
            lastModified: record?.lastModified, sha256: digest, attempts: context.attempt, url: url
        ).json
    }

    // MARK: What was fetched

    private func finished(
        _ target: DownloadTarget, _ result: DownloadResult, from source: String
    ) async throws(JobError) -> JSON {
        var result = result
        let status = try await services.queue.run { [services] () throws(JobError) in
            do throws(Errno) {
                try services.files.sync(target.part.descriptor)
                return try services.files.statusOfOpen(target.part.descriptor)
            } catch {
                throw JobError(path: error, "synced", target.partPath)
            }
        }
        let replaces = spec.exists == .replace || spec.exists == .validate
        for count in 0...(spec.exists == .rename ? DownloadTarget.alternatives : 0) {
            let name = count == 0 ? target.name : target.path.alternative(count)
            let path = target.path.absolute(name)
            if !replaces {
                // The record of what is there already must stay.
                let isTaken = try await services.queue.run { () throws(JobError) in try target.existing(name) != nil }
                if isTaken { continue }
            }
            result.path = path
            // Before the rename: after a crash in between, the job would mistake its own file for a foreign one.
            await remember(
                DownloadRecord(
                    job: context.job, link: context.link, owner: context.owner, url: Masking.masked(url: source),
                    result: result.json, file: status.identity, size: status.size, modifiedAt: status.modifiedAt),
                path)
            let isDone = try await services.queue.run { () throws(JobError) in
                try target.finish(as: name, replacing: replaces)
            }
            if isDone { return result.json }
        }
        if spec.exists == .skip {
            await services.queue.run { target.remove() }
            let existing = try await services.queue.run { () throws(JobError) in try target.existing() }
            if existing != nil { return try await skipped(target) }
        }
        throw JobError(
            .exists,
            "\"\(target.absolutePath)\" appeared while it was being downloaded; give another path, or replace it.")
    }

    private func remember(_ record: DownloadRecord, _ path: String) async {
        do {
            try await context.recordDownload(path, record.json).get()
        } catch is CancellationError {
            // A cancelled download leaves no record.
        } catch {
            services.logger.warning(
                "A download could not be remembered.", metadata: ["path": "\(path)", "error": "\(error)"])
        }
    }
}
