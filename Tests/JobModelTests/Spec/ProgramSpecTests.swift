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
        #expect(spec?.input == .line(nil))
        #expect(spec?.environment == ["A": "1", "b c": ""])
        let plain = try read(["command": ["/bin/ls", "-l"]])
        #expect(plain?.subject == .command(["/bin/ls", "-l"]))
        #expect(plain?.input == .none && plain?.environment == .none && plain?.directory == .none)
        #expect(plain?.umask == 0o077 && plain?.reportsProgress == false && plain?.output == .text)
        #expect(try read(["program": "x", "output": "json"])?.output == .json)
        let placed = try read([
            "command": ["/bin/ls"], "environment": [:], "directory": "/\u{301}a", "umask": "0027", "progress": true,
        ])
        #expect(placed?.environment == [:] && placed?.directory == "/\u{301}a")
        #expect(placed?.umask == 0o027 && placed?.reportsProgress == true)
    }

    @Test func input_isBytes_orALineOfJSON() throws {
        #expect(try read(["program": "a", "input": "a\n"])?.input == .bytes([0x61, 0x0A]))
        #expect(try read(["program": "a", "inputBase64": "/wA="])?.input == .bytes([0xFF, 0]))
        let line = try read(["program": "a", "input": ["b": 1]])?.input
        #expect(line?.bytes == Array("{\"b\":1}\n".utf8) && line?.size == 8)
        #expect(pointer(["program": "a", "input": nil, "inputBase64": ""]) == "/source/inputBase64")
        #expect(pointer(["program": "a", "inputBase64": "/wA"]) == "/source/inputBase64")
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
        let long = JSON.string(String(repeating: "x", count: (128 << 10) + 1))
        #expect(pointer(["command": ["/b", long]]) == "/source/command/1")
        #expect(pointer(["program": "a", "arguments": [long]]) == "/source/arguments/0")
        #expect(pointer(["command": ["/b"], "directory": "b"]) == "/source/directory")
        #expect(pointer(["command": ["/b"], "directory": "/b\0"]) == "/source/directory")
        for mask in ["", "8", "1000", "00077", "+77", "-1", "0x1"] {
            #expect(pointer(["command": ["/b"], "umask": .string(mask)]) == "/source/umask", "\(mask)")
        }
        #expect(pointer(["command": ["/b"], "umask": 77]) == "/source/umask")
        for (member, value) in [("directory", "/"), ("umask", "077"), ("progress", true)] as [(String, JSON)] {
            #expect(pointer(["program": "a", member: value]) == "/source/\(member)")
        }
        #expect(pointer(["program": "a", "url": "x"]) == "/source/url")
        #expect(pointer(["program": "a", "output": "yaml"]) == "/source/output")
        for name in ["", "a=b", "a\0"] {
            var environment = JSONObject()
            environment[name] = "x"
            let pointer = self.pointer(["program": "a", "environment": .object(environment)])
            #expect(pointer?.hasPrefix("/source/environment/") == true, "\(name)")
        }
        #expect(pointer(["program": "a", "environment": ["A": nil]]) == "/source/environment/A")
        #expect(pointer(["program": "a", "environment": ["A": 1]]) == "/source/environment/A")
        #expect(pointer(["program": "a", "environment": ["A": "\0"]]) == "/source/environment/A")
        #expect(pointer(["program": "a", "environment": ["LD_PRELOAD": "1", "DEFERD_JOB": "2"]]) == nil)
    }

    @Test func argumentsAndVariables_areNotCounted() {
        let words = JSON.array(Array(repeating: "x", count: 3000))
        let variables = (0..<3000).reduce(into: JSONObject()) { $0.append("V\($1)", "x") }
        #expect(
            pointer(["command": ["/a"], "arguments": words, "environment": .object(variables)]) == nil)
        #expect(pointer(["command": .array(["/a"] + (words.array ?? []))]) == nil)
    }

    @Test func expressions_standForWhatTheyGive_andAreCheckedThen() {
        #expect(pointer(["command": "{{input}}"], .template) == nil)
        #expect(pointer(["command": ["{{input}}"], "arguments": "{{input/words}}"], .template) == nil)
        #expect(pointer(["command": ["{{input}}x"]], .template) == nil)
        #expect(pointer(["program": "{{input}}", "environment": "{{input}}"], .template) == nil)
        #expect(pointer(["program": "a", "environment": ["{{x}}": "{{input}}"]], .template) == nil)
        #expect(pointer(["command": ["/a"], "directory": "{{input}}", "umask": "{{input}}"], .template) == nil)
        #expect(pointer(["command": ["/a"], "directory": "a", "umask": 22], .expanded) == "/source/directory")
        #expect(pointer(["command": ["ls"]], .expanded) == "/source/command/0")
        #expect(pointer(["command": ["/a"], "arguments": [1, true]], .expanded) == nil)
        #expect(pointer(["program": "a", "environment": ["A": 1]], .expanded) == nil)
        #expect(pointer(["program": "a", "arguments": ["\0"]], .expanded) == "/source/arguments/0")
    }

    @Test func error_ofAProgram_isReadAsItWasWritten() {
        var error = JobError(.program, "It failed.")
        error.program = ["exit": 3, "output": "no\n"]
        #expect(JobError(json: error.json) == error)
        #expect(JobError(json: JobError(.program, "It failed.").json).program == nil)
    }
}
