import DeferredKit
import JobModel
import NIOCore
import SystemPackage

/// One run of a `program` source: starts the program, reads its output, and makes a result or an error of its end.
struct ProgramAttempt: Sendable {
    let spec: ProgramSpec
    let input: Handover<ProgramSpec.Input>
    let command: ProgramCommand
    let host: ProgramHost
    let transfer: Transfer

    private var directory: String { transfer.settings.programs.directory }

    func run() async throws(JobError) -> JSON {
        let run = ProgramRun(by: try await host.connect(in: directory, transfer.control))
        // The program may run for long.
        let longInput = try await BodyFile.moving(
            { [input] in input.take()?.bytes ?? [] }, ofSize: input.look { $0?.size ?? 0 }, for: "input", transfer)
        // The file stays until the program's group has ended.
        defer { withExtendedLifetime(longInput) {} }
        let pipes = try await start(run, longInput)
        let reader = await PipeReader.open([pipes.output, pipes.errors], on: transfer.loop)
        let output = ProgramOutput(of: self)
        async let isRead: Void = output.read(reader)
        var failure: JobError?
        do throws(JobError) {
            try await end(of: run, reader)
        } catch {
            failure = error
        }
        // A stopped job, too, ends only with the program's group.
        run.stop(by: transfer.clock)
        await run.end.deferred.get()
        transfer.loop.execute { reader.cut() }
        await isRead
        if command.directory == nil {
            let name = host.directoryName(of: run)
            // The next start of the daemon tries again.
            await transfer.ownFiles.run { [directory] in try? ProgramDirectory.remove(name, in: directory) }
        }
        if var failure {
            var end = failure.program?.object ?? [:]
            end["output"] = output.log.tail.json
            failure.program = .object(end)
            throw failure
        }
        return try await output.result()
    }

    private func start(
        _ run: ProgramRun, _ longInput: BodyFile?
    ) async throws(JobError) -> (output: Int32, errors: Int32) {
        let ownDirectory = command.directory == nil ? "\(directory)/\(host.directoryName(of: run))" : nil
        do throws(Errno) {
            return try await transfer.ownFiles.run { () throws(Errno) in
                let bytes = longInput == nil ? input.take()?.bytes : nil
                return try run.guardian.start(
                    run, command, in: ownDirectory, input: bytes, inputFile: longInput?.descriptor)
            }
        } catch {
            // The guard is gone, as its reports are about to say, or it is stopped.
            if error == .brokenPipe || error == .connectionReset || error == .wouldBlock { throw lost }
            throw failed("could not be started: \(error); try again later.")
        }
    }

    /// Waits for the end of the program and of its group; throws why it failed.
    private func end(of run: ProgramRun, _ reader: PipeReader) async throws(JobError) {
        // The program may go on after it closed its output.
        let ending: ProgramRun.Ending = try await transfer.control.wait { promise in
            run.ending.deferred.upon { [transfer] ending in
                transfer.loop.execute {
                    // Later output comes from other processes of the group.
                    reader.cut()
                    if run.hasRemains { run.stop(by: transfer.clock) }
                    promise.succeed(ending.get())
                }
            }
        }
        // The rest of its group has seconds to end, which do not count towards the timeout.
        await run.end.deferred.get()
        try check(ending)
    }

    private func check(_ ending: ProgramRun.Ending) throws(JobError) {
        switch ending {
        case .exited(0): return
        case .exited(let status):
            var error = failed("exited with \(status); look at its output.", ["exit": status.json])
            // EX_TEMPFAIL
            error.isRetryable = status == 75
            throw error
        case .signalled(let number):
            throw failed("was ended by signal \(number); look at its output.", ["signal": number.json])
        case .refused(let error, let isDirectory):
            let reason = Errno(rawValue: error)
            throw isDirectory
                ? failed("could not be started, as its directory could not be entered: \(reason); check the directory.")
                : failed("could not be started: \(reason); \(ProgramCommand.advice(on: reason))")
        case .lost: throw lost
        }
    }

    private var lost: JobError {
        JobError(
            .internal, "The program \(name) was ended with the process that guards programs; try again.",
            retryable: true)
    }

    private func failed(_ what: String, _ end: JSONObject = [:]) -> JobError {
        var error = JobError(.program, "The program \(name) \(what)")
        error.program = .object(JSONObject(end.members + [JSONObject.Member(name: "output", value: "")]))
        return error
    }

    var name: String {
        switch spec.subject {
        case .named(let name): "\"\(name.echoed)\""
        case .command(let words): "\"\((words.first ?? "").echoed)\""
        }
    }
}
