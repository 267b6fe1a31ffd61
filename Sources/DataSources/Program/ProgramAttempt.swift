import DeferredKit
import JobModel
import NIOCore
import SystemPackage

/// One run of a `program` source: starts the program, reads its output, and makes a result or an error of its end.
struct ProgramAttempt: Sendable {
    /// The spec without its input.
    let spec: ProgramSpec
    let input: Handover<JSON>
    let command: ProgramCommand
    let host: ProgramHost
    let transfer: Transfer

    private var directory: String { transfer.settings.programs.directory }

    /// The bytes of standard error that an error shows.
    static let shownError = 4 << 10

    func run() async throws(JobError) -> JSON {
        let connection = try await host.connect(in: directory, transfer.control)
        let longInput = try await longInput()
        // The file stays until the program's group has ended.
        defer { withExtendedLifetime(longInput) {} }
        let run = host.makeRun()
        let pipes: (output: Int32, errors: Int32)
        do throws(JobError) {
            pipes = try await start(run, connection, longInput)
        } catch {
            host.forget(run)
            throw error
        }
        let output = await PipeReader.open(pipes.output, on: transfer.loop)
        let errors = await PipeReader.open(pipes.errors, on: transfer.loop, keeping: Self.shownError)
        let outcome: Result<JSON, JobError>
        do throws(JobError) {
            outcome = .success(try await result(of: run, output, errors))
        } catch {
            outcome = .failure(error)
        }
        // A stopped job, too, ends only with the program's group.
        host.stop(run, by: transfer.clock)
        await run.end.deferred.get()
        let ended = outcome.mapError { withStandardError($0, errors.kept) }
        output.close()
        errors.close()
        if command.directory == nil {
            let name = host.directoryName(of: run)
            // The next start of the daemon tries again.
            await transfer.ownFiles.run { [directory] in try? ProgramDirectory.remove(name, in: directory) }
        }
        return try ended.get()
    }

    // MARK: - Start

    private func start(
        _ run: ProgramRun, _ connection: ProgramGuard, _ longInput: BodyFile?
    ) async throws(JobError) -> (output: Int32, errors: Int32) {
        let ownDirectory = command.directory == nil ? "\(directory)/\(host.directoryName(of: run))" : nil
        do throws(Errno) {
            return try await transfer.ownFiles.run { () throws(Errno) in
                let line = longInput == nil ? input.take().map(Self.line) : nil
                return try connection.start(
                    run.id, command, in: ownDirectory, input: line, inputFile: longInput?.descriptor)
            }
        } catch {
            // The guard is gone, as its reports are about to say, or it is stopped.
            if error == .brokenPipe || error == .connectionReset || error == .wouldBlock { throw lost }
            throw failed("could not be started: \(error); try again later.")
        }
    }

    /// Moves a long input to a file, as the program may run for long; it counts like request bodies.
    private func longInput() async throws(JobError) -> BodyFile? {
        // With a line feed.
        let size = input.look { $0?.size ?? 0 } + 1
        guard size > DocumentTransfer.longestInMemory else { return nil }
        return try await BodyFile.moving(
            { [input] in input.take().map(Self.line) ?? [] }, ofSize: size, for: "input", transfer)
    }

    private static func line(of input: JSON) -> [UInt8] {
        var writer = JSONWriter()
        writer.write(input)
        return writer.bytes + [UInt8(ascii: "\n")]
    }

    // MARK: - Output and end

    private func result(
        of run: ProgramRun, _ output: PipeReader, _ errors: PipeReader
    ) async throws(JobError) -> JSON {
        let (loop, control) = (transfer.loop, transfer.control)
        run.ending.deferred.upon { [host, transfer] _ in
            loop.execute {
                // Later output comes from other processes of the group.
                output.cut()
                errors.cut()
                if run.hasRemains { host.stop(run, by: transfer.clock) }
            }
        }
        let file = BodyFile(transfer)
        var sorted = ProgramOutput()
        var received: [UInt8] = []
        while let chunk = try await control.wait({ output.next($0) }) {
            if let progress = chunk.withUnsafeReadableBytes({ sorted.append($0) }) { report(progress) }
            try check(sorted.size)
            received += sorted.drain()
            if sorted.size > DocumentTransfer.longestInMemory {
                try await file.write(received)
                received.removeAll(keepingCapacity: true)
            }
        }
        if let progress = sorted.end() { report(progress) }
        try check(sorted.size)
        received += sorted.drain()
        // The program may go on after it closed its output.
        let ending: ProgramRun.Ending = try await control.wait { promise in
            run.ending.deferred.upon { ending in loop.execute { promise.succeed(ending.get()) } }
        }
        // The rest of its group has seconds to end, which do not count towards the timeout.
        await run.end.deferred.get()
        try check(ending, errors)
        let late = (try? control.check()) == nil ? TransferControl(control.clock) : control
        if sorted.size <= DocumentTransfer.longestInMemory { return try value(in: received).value }
        try await file.write(received)
        return try await transfer.shared.documents.value(ofSize: sorted.size, transfer, late) {
            [size = sorted.size] () throws(JobError) in try value(in: try file.read(size))
        }
    }

    private func report(_ progress: ProgramOutput.Progress) {
        transfer.context.countsIn(progress.unit)
        transfer.report(ProgressUpdate(completed: progress.completed, total: progress.total))
    }

    private func check(_ size: Int) throws(JobError) {
        guard size <= command.output else {
            throw JobError(
                .tooLarge,
                "The program \(name) wrote more than \(command.output) bytes; have it write less, or to a file.")
        }
    }

    private func check(_ ending: ProgramRun.Ending, _ errors: PipeReader) throws(JobError) {
        let advice =
            errors.kept.isEmpty
            ? ", and wrote nothing to its standard error." : "; see what it wrote to its standard error."
        switch ending {
        case .exited(0): return
        case .exited(let status):
            var error = failed("exited with \(status)\(advice)", .exit(status))
            // EX_TEMPFAIL
            error.isRetryable = status == 75
            throw error
        case .signalled(let number):
            throw failed("was ended by signal \(number)\(advice)", .signal(number))
        case .refused(let error, let isDirectory):
            let reason = Errno(rawValue: error)
            throw isDirectory
                ? failed("could not be started, as its directory could not be entered: \(reason); check the directory.")
                : failed("could not be started: \(reason); check that it exists and may be executed.")
        case .lost: throw lost
        }
    }

    private var lost: JobError {
        JobError(
            .internal, "The program \(name) was ended with the process that guards programs; try again.",
            retryable: true)
    }

    private func failed(_ what: String, _ reason: JobError.ProgramEnd.Reason = .none) -> JobError {
        var error = JobError(.program, "The program \(name) \(what)")
        error.program = JobError.ProgramEnd(reason, standardError: "")
        return error
    }

    private func withStandardError(_ error: JobError, _ errors: [UInt8]) -> JobError {
        var error = error
        // The kept bytes may begin in the middle of a character.
        let start = errors.count < Self.shownError ? 0 : errors.prefix(3).prefix { $0 & 0xC0 == 0x80 }.count
        error.program = JobError.ProgramEnd(
            error.program?.reason ?? .none, standardError: String(decoding: errors[start...], as: UTF8.self))
        return error
    }

    /// The program's name in messages.
    private var name: String {
        switch spec.subject {
        case .named(let name): "\"\(name.echoed)\""
        case .command(let words): "\"\((ProgramSpec.shown(words).first ?? "").echoed)\""
        }
    }

    // MARK: - Result

    /// The program's output as JSON, or as text if it is not one JSON value; and its cost in memory.
    private func value(in bytes: [UInt8]) throws(JobError) -> (value: JSON, cost: Int) {
        do throws(JSONSyntaxError) {
            return try bytes.withUnsafeBufferPointer { (bytes) throws(JSONSyntaxError) in
                try JSONParser.parse(UnsafeRawBufferPointer(bytes), budget: transfer.settings.limits.documentValues)
            }
        } catch  where error.isTooLarge {
            throw JobError(.tooLarge, "The output of \(name) has too many values, \(error); have it write fewer.")
        } catch {}
        let line = bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
        guard let text = String(validating: line, as: UTF8.self) else {
            throw JobError(.parse, "The output of \(name) is not UTF-8; have it write text, or to a file.")
        }
        return (.string(text), line.count)
    }
}
