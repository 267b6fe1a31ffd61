import CLinux
import DeferredKit
import Glibc
import JobModel
import NIOCore
import SystemPackage

/// One run of a `program` source: starts it, reads what it writes, and makes a result or an error of its end.
struct ProgramAttempt: Sendable {
    /// Without its input.
    let spec: ProgramSpec
    let input: Handover<JSON>
    let command: ProgramCommand
    let context: SourceContext
    let settings: SourceSettings
    let host: ProgramHost
    let shared: SharedServices
    let handle: TransferHandle

    /// What the directories of programs are made in.
    private var directory: String { settings.programs.directory }
    private var queue: FileQueue { shared.stateQueue.of(context.owner) }

    /// Bytes of standard error that an error shows.
    static let shownError = 4 << 10
    /// The largest output that is received in memory, and input that is handed over in memory; more goes through a file.
    private static let largestInMemory = 256 << 10
    /// The largest output that is made a result on the event loop.
    private static let smallResult = 64 << 10

    func run() async throws(JobError) -> JSON {
        let connection = try await host.connect(in: directory, handle.control)
        let longInput = try await longInput()
        // The program's group has the file until it ends.
        defer { withExtendedLifetime(longInput) {} }
        let run = host.makeRun(clock: handle.clock)
        let launch: Launch
        do throws(JobError) {
            launch = try await queue.run { () throws(JobError) in try start(run, connection, longInput) }
        } catch {
            host.forget(run)
            throw error
        }
        let output = await PipeReader.open(launch.output, on: handle.loop)
        let errors = await PipeReader.open(launch.errors, on: handle.loop, keeping: Self.shownError)
        let file = BodyFile(of: context, files: shared.files, queue: queue)
        let outcome: Result<JSON, JobError>
        do throws(JobError) {
            outcome = .success(try await result(of: run, output, errors, file))
        } catch {
            outcome = .failure(error)
        }
        // Where it was broken off, the job ends with the group all the same.
        run.stop()
        await run.end.deferred.get()
        // With what it said to its end.
        let ended = outcome.mapError { $0.program == nil ? withStandardError($0, .none, errors.kept) : $0 }
        output.close()
        errors.close()
        if launch.isOwnDirectory {
            let name = host.directoryName(of: run)
            // What cannot be removed is tried again at the next start.
            await queue.run { [directory] in try? ProgramDirectory.remove(name, in: directory) }
        }
        return try ended.get()
    }

    // MARK: - Start

    /// What the daemon keeps of a program that was started.
    private struct Launch: Sendable {
        let output: Int32
        let errors: Int32
        let isOwnDirectory: Bool
    }

    /// Hands the program over to the guard. Blocks.
    private func start(
        _ run: ProgramRun, _ connection: ProgramGuard, _ longInput: BodyFile?
    ) throws(JobError) -> Launch {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        do throws(Errno) {
            let workingDirectory = command.directory ?? "\(directory)/\(host.directoryName(of: run))"
            let block = command.block(in: workingDirectory)
            let blockFile = try Self.memoryFile(block)
            opened.append(blockFile)
            let input = try standardInput(longInput)
            opened.append(input)
            let output = try Self.pipe()
            opened += [output.read, output.write]
            let errors = try Self.pipe()
            opened += [errors.read, errors.write]
            let isOwnDirectory = command.directory == nil
            if isOwnDirectory, mkdir(workingDirectory, 0o700) != 0 { throw Errno(rawValue: errno) }
            do throws(Errno) {
                try connection.start(
                    run.id, block: blockFile, size: block.count, streams: [input, output.write, errors.write])
            } catch {
                if isOwnDirectory { rmdir(workingDirectory) }
                throw error
            }
            // The guard has its own by then.
            opened = [blockFile, input, output.write, errors.write]
            return Launch(output: output.read, errors: errors.read, isOwnDirectory: isOwnDirectory)
        } catch {
            // The guard is gone, which its reports are about to tell; or it is stopped.
            if error == .brokenPipe || error == .connectionReset || error == .wouldBlock { throw lost }
            throw failed("could not be started: \(error); try again later.", .none, [])
        }
    }

    private var lost: JobError {
        JobError(
            .internal, "The program \(name) was ended, as the process that guards programs was; try again.",
            retryable: true)
    }

    /// An input that is too long to be kept in memory for as long as the program runs; it counts as bodies do that are being
    /// sent.
    private func longInput() async throws(JobError) -> BodyFile? {
        // With the end of the line.
        let size = input.look { $0?.size ?? 0 } + 1
        guard size > Self.largestInMemory else { return nil }
        let room = try shared.bodies.admit(Int64(size), of: context.owner, within: context.roomForBody, as: "input")
        return try await BodyFile.writing(
            { [input] in input.take().map(Self.line) ?? [] }, in: room, leaving: settings.downloads.minimumFree,
            for: context, files: shared.files, queue: queue, handle.control)
    }

    /// What the program reads: one line of JSON, or nothing. Not a pipe, so that nobody waits for a program that does not read.
    private func standardInput(_ long: BodyFile?) throws(Errno) -> Int32 {
        if let long { return try Self.reading(long.descriptor) }
        // The kernel has it from here on, and a program may run for long.
        guard let input = input.take() else {
            let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw Errno(rawValue: errno) }
            return descriptor
        }
        let file = try Self.memoryFile(Self.line(of: input))
        defer { close(file) }
        return try Self.reading(file)
    }

    /// Opens a file anew, so that the program can only read it, from its beginning.
    private static func reading(_ file: Int32) throws(Errno) -> Int32 {
        let descriptor = open("/proc/self/fd/\(file)", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Errno(rawValue: errno) }
        return descriptor
    }

    private static func line(of input: JSON) -> [UInt8] {
        var writer = JSONWriter()
        writer.write(input)
        return writer.bytes + [UInt8(ascii: "\n")]
    }

    private static func memoryFile(_ bytes: [UInt8]) throws(Errno) -> Int32 {
        let file = deferd_memory_file("deferd")
        guard file >= 0 else { throw Errno(rawValue: errno) }
        do throws(Errno) {
            try FileOperations.real.write(bytes, to: file)
            return file
        } catch {
            close(file)
            throw error
        }
    }

    private static func pipe() throws(Errno) -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        guard deferd_pipe(&ends) == 0 else { throw Errno(rawValue: errno) }
        return (ends[0], ends[1])
    }

    // MARK: - Output and end

    private func result(
        of run: ProgramRun, _ output: PipeReader, _ errors: PipeReader, _ file: BodyFile
    ) async throws(JobError) -> JSON {
        let loop = handle.loop
        run.ending.deferred.upon { _ in
            loop.execute {
                // What others of the group write from now on is not the program's.
                output.cut()
                errors.cut()
                // Most groups end with their program. What is left may write when it is told to end, which comes too late now.
                if run.hasRemains { run.stop() }
            }
        }
        var sorted = ProgramOutput()
        var received: [UInt8] = []
        var isSpilled = false
        while let chunk = try await handle.control.wait({ output.next($0) }) {
            if let progress = chunk.withUnsafeReadableBytes({ sorted.append($0) }) { report(progress) }
            try check(sorted.size)
            received += sorted.drain()
            if isSpilled || received.count > Self.largestInMemory {
                isSpilled = true
                try await file.write(received)
                received.removeAll(keepingCapacity: true)
            }
        }
        if let progress = sorted.end() { report(progress) }
        try check(sorted.size)
        received += sorted.drain()
        if isSpilled { try await file.write(received) }
        // Closing its output is not its end.
        let ending: ProgramRun.Ending = try await handle.control.wait { promise in
            run.ending.deferred.upon { ending in loop.execute { promise.succeed(ending.get()) } }
        }
        // What is left of its group has seconds to end. Those do not count, as the program has done what it had to.
        await run.end.deferred.get()
        try check(ending, errors)
        // A timeout that passed meanwhile is none of the result's either.
        let control = (try? handle.control.check()) == nil ? TransferControl() : handle.control
        if !isSpilled, received.count <= Self.smallResult { return try value(in: received).value }
        return try await shared.documents.value(
            ofSize: sorted.size, within: settings.limits.documentValues, for: context, on: queue, control
        ) { [received, isSpilled, size = sorted.size] () throws(JobError) in
            try value(in: isSpilled ? try file.read(size) : received)
        }
    }

    private func report(_ progress: ProgramOutput.Progress) {
        context.countsIn(progress.unit)
        handle.report(ProgressUpdate(completed: progress.completed, total: progress.total))
    }

    private func check(_ size: Int) throws(JobError) {
        guard size <= command.output else {
            throw JobError(
                .tooLarge,
                "The program \(name) wrote more than \(command.output) bytes; have it write less, or into a file.")
        }
    }

    private func check(_ ending: ProgramRun.Ending, _ errors: PipeReader) throws(JobError) {
        switch ending {
        case .exited(0): return
        case .exited(let status):
            var error = failed("exited with \(status)\(Self.pointing(to: errors.kept))", .exit(status), errors.kept)
            // EX_TEMPFAIL
            error.isRetryable = status == 75
            throw error
        case .signalled(let number):
            throw failed(
                "was ended by signal \(number)\(Self.pointing(to: errors.kept))", .signal(number), errors.kept)
        case .refused(let error, let isDirectory):
            let reason = Errno(rawValue: error)
            throw isDirectory
                ? failed(
                    "could not be started, as its directory could not be entered: \(reason); check the directory.",
                    .none, [])
                : failed("could not be started: \(reason); check that it is there and may be executed.", .none, [])
        case .lost:
            throw lost
        }
    }

    /// How a message about an end goes on.
    private static func pointing(to errors: [UInt8]) -> String {
        errors.isEmpty ? ", and wrote nothing to its standard error." : "; see what it wrote to its standard error."
    }

    private func failed(
        _ what: String, _ reason: JobError.ProgramEnd.Reason, _ errors: [UInt8]
    ) -> JobError {
        withStandardError(JobError(.program, "The program \(name) \(what)"), reason, errors)
    }

    private func withStandardError(
        _ error: JobError, _ reason: JobError.ProgramEnd.Reason, _ errors: [UInt8]
    ) -> JobError {
        var error = error
        // It may begin in the middle of a character.
        let start = errors.count < Self.shownError ? 0 : errors.prefix(3).prefix { $0 & 0xC0 == 0x80 }.count
        error.program = JobError.ProgramEnd(
            reason, standardError: String(decoding: errors[start...], as: UTF8.self))
        return error
    }

    /// How messages name the program.
    private var name: String {
        switch spec.subject {
        case .named(let name): "\"\(name.echoed)\""
        case .command(let words): "\"\((ProgramSpec.shown(words).first ?? "").echoed)\""
        }
    }

    // MARK: - Result

    /// What the program gave back: JSON where it is one value, else text. And what that takes in memory.
    private func value(in bytes: [UInt8]) throws(JobError) -> (value: JSON, cost: Int) {
        do throws(JSONSyntaxError) {
            return try bytes.withUnsafeBufferPointer { (bytes) throws(JSONSyntaxError) in
                try JSONParser.parse(UnsafeRawBufferPointer(bytes), budget: settings.limits.documentValues)
            }
        } catch  where error.isTooLarge {
            throw JobError(.tooLarge, "The output of \(name) has too many values, \(error); have it write fewer.")
        } catch {}
        let line = bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
        guard let text = String(validating: line, as: UTF8.self) else {
            throw JobError(.parse, "The output of \(name) is not UTF-8; have it write text, or into a file.")
        }
        return (.string(text), line.count)
    }
}
