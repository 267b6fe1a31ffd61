@testable import JobModel
import Testing

/// The members of a `program` source, and where errors in them point.
@Suite struct ProgramSpecTests {
    private func read(_ members: JSON, _ mode: MemberReader.Mode = .literal) throws(SpecError) -> ProgramSpec? {
        var source = members.object ?? JSONObject()
        source["type"] = "program"
        let parameters = try SourceParameters(.object(source), mode: mode, limits: JobLimits())
        guard case .program(let spec) = parameters else { return nil }
        return spec
    }

    private func pointer(_ members: JSON, _ mode: MemberReader.Mode = .literal) -> String? {
        do { _ = try read(members, mode) } catch { return error.pointer.description }
        return nil
    }

    @Test func members_areRead() throws {
        let spec = try read([
            "program": "resize", "arguments": ["a", ""], "input": nil, "environment": ["A": "1", "b c": ""],
        ])
        #expect(spec?.subject == .named("resize"))
        #expect(spec?.arguments == ["a", ""])
        #expect(spec?.input == .some(.null))
        #expect(spec?.environment.keys.sorted() == ["A", "b c"])
        #expect(try read(["command": ["/bin/ls", "-l"]])?.subject == .command(["/bin/ls", "-l"]))
        #expect(try read(["program": "x"])?.input == .none)
    }

    @Test func wrongMembers_arePointedAt() {
        #expect(pointer([:]) == "/source/program")
        #expect(pointer(["program": ""]) == "/source/program")
        #expect(pointer(["program": 1]) == "/source/program")
        #expect(pointer(["program": "a", "command": ["/b"]]) == "/source/command")
        #expect(pointer(["command": []]) == "/source/command")
        #expect(pointer(["command": "/bin/ls"]) == "/source/command")
        #expect(pointer(["command": ["ls"]]) == "/source/command/0")
        #expect(pointer(["command": ["/bin/ls", 1]]) == "/source/command/1")
        #expect(pointer(["command": ["/bin/ls", "a\0"]]) == "/source/command/1")
        #expect(pointer(["program": "a\0"]) == "/source/program")
        #expect(pointer(["program": "a", "arguments": ["", "\0"]]) == "/source/arguments/1")
        #expect(
            pointer(["program": "a", "arguments": .array(Array(repeating: "x", count: 101))]) == "/source/arguments")
        #expect(pointer(["program": "a", "arguments": .array(Array(repeating: "x", count: 100))]) == nil)
        #expect(pointer(["program": "a", "url": "x"]) == "/source/url")
        for name in ["", "a=b", "LD_PRELOAD", "LD_", "DEFERD_JOB", "DEFERD_", "a\0"] {
            var environment = JSONObject()
            environment[name] = "x"
            let pointer = self.pointer(["program": "a", "environment": .object(environment)])
            #expect(pointer?.hasPrefix("/source/environment/") == true, "\(name)")
        }
        #expect(pointer(["program": "a", "environment": ["A": nil]]) == "/source/environment/A")
        #expect(pointer(["program": "a", "environment": ["A": 1]]) == "/source/environment/A")
        #expect(pointer(["program": "a", "environment": ["A": "\0"]]) == "/source/environment/A")
        #expect(pointer(["program": "a", "environment": ["ld_x": "1", "LDX": "2"]]) == nil)
    }

    @Test func expressions_standForWhatTheyGive_andAreCheckedThen() {
        #expect(pointer(["command": "{{input}}"], .template) == nil)
        #expect(pointer(["command": ["{{input}}"], "arguments": "{{input/words}}"], .template) == nil)
        #expect(pointer(["command": ["{{input}}x"]], .template) == nil)
        #expect(pointer(["program": "{{input}}", "environment": "{{input}}"], .template) == nil)
        #expect(pointer(["program": "a", "environment": ["{{x}}": "{{input}}"]], .template) == nil)
        #expect(pointer(["command": ["ls"]], .expanded) == "/source/command/0")
        #expect(pointer(["command": ["/a"], "arguments": [1, true]], .expanded) == nil)
        #expect(pointer(["program": "a", "environment": ["A": 1]], .expanded) == nil)
        #expect(pointer(["program": "a", "arguments": ["\0"]], .expanded) == "/source/arguments/0")
    }

    @Test func error_ofAProgram_isReadAsItWasWritten() {
        for reason in [JobError.ProgramEnd.Reason.exit(3), .signal(9), .none] {
            var error = JobError(.program, "It failed.")
            error.program = .init(reason, standardError: "no\n")
            #expect(JobError(json: error.json) == error)
        }
        #expect(JobError(json: JobError(.program, "It failed.").json).program == nil)
    }
}
