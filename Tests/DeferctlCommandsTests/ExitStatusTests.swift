import ArgumentParser
import JobModel
import Testing

@testable import DeferctlCommands
@testable import JobClient

/// The status of this program; the testing library has a type of that name, too.
typealias Status = DeferctlCommands.ExitStatus

@Suite struct ExitStatusTests {
    @Test func worst_prefersFailureToCancellation() {
        #expect(Status.worst([]) == .ok)
        #expect(Status.worst([.ok, .jobCancelled, .ok]) == .jobCancelled)
        #expect(Status.worst([.jobCancelled, .jobFailed, .ok]) == .jobFailed)
        #expect(Status.worst([.jobFailed, .badData]) == .badData)
    }

    @Test(arguments: [
        (-32001, Status.badData), (-32002, .forbidden), (-32003, .tryAgain), (-32004, .badData),
        (-32005, .tryAgain), (-32006, .badData), (-32007, .tryAgain), (-32008, .tryAgain), (-32602, .badData),
        (-32601, .configuration), (-32603, .bug), (-32700, .bug), (-1, .bug),
    ])
    func remoteError_hasItsStatus(code: Int, status: Status) {
        let remote = JobClientError.Remote(code: code, kind: nil, message: "Said.", data: [:])
        #expect(CommandFailure(JobClientError(.rpc, "Said.", rpc: remote)) == CommandFailure(status, "Said."))
    }

    @Test(arguments: [
        (JobClientError.Code.unreachable, Status.unreachable), (.denied, .forbidden), (.closed, .unreachable),
        (.protocolViolation, .bug), (.cancelled, .tryAgain), (.slowReader, .tryAgain), (.misuse, .bug),
    ])
    func clientError_hasItsStatus(code: JobClientError.Code, status: Status) {
        #expect(CommandFailure(JobClientError(code, "x")).status == status)
    }

    @Test func tooLongALine_isBadData() {
        let remote = JobClientError.Remote(code: -32600, kind: "line-too-long", message: "x", data: [:])
        #expect(CommandFailure(JobClientError(.rpc, "x", rpc: remote)).status == .badData)
    }

    @Test func message_saysWhere_whenTheSpecIsWrong() {
        let remote = JobClientError.Remote(
            code: -32602, kind: nil, message: "Invalid params: Wrong.",
            data: ["pointer": "/source/url", "reason": "Wrong."])
        #expect(
            CommandFailure(JobClientError(.rpc, remote.message, rpc: remote)).message == "Wrong. (at /source/url)")
    }
}
