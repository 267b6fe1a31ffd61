import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// `deferctl run` passes what the caller's shell has, to a daemon of the caller's own, and changes no byte of it.
@Suite struct ProgramSurroundingsTests {
    private typealias Run = (_ script: String) async throws -> (end: ChildProcess.End, output: String, errors: String)

    /// Runs `body` with a user's daemon; it runs shell scripts in an empty directory, in which `run` is `deferctl run`.
    private static func with(_ configuration: String = "", _ body: (Daemon, Run) async throws -> Void) async throws {
        try await Daemon.run(configuration: configuration, flags: ["--instance", "user"]) { daemon async throws in
            let directory = daemon.directory.path + "/work"
            mkdir(directory, 0o755)
            try await body(daemon) { script in
                let start = #"ctl() { "$DEFERCTL" --socket "$SOCKET" "$@"; }; run() { ctl run --quiet "$@"; }; "#
                return try await ChildProcess.run(
                    ["/bin/sh", "-c", start + script],
                    environment: ["DEFERCTL": BuiltProgram.deferctl, "SOCKET": daemon.socket, "TOKEN": "s3cret"],
                    directory: directory)
            }
        }
    }

    // MARK: - As from the shell

    @Test func command_hasTheEnvironmentDirectoryAndUmask_ofItsCaller() async throws {
        try await Self.with { daemon, run async throws in
            let directory = daemon.directory.path + "/work"
            let script = "umask 027; export LD_X=1 DEFERD_JOB=x; run sh -c 'umask; echo $TOKEN $LD_X $DEFERD_JOB; pwd'"
            #expect(try await run(script).output == "0027\ns3cret 1 1\n\(directory)\n")
            #expect(try await run("run -e TOKEN=a -e B= sh -c 'echo $TOKEN${B-unset}'").output == "a\n")
            let clean = try await run("run --clean-env -e A=1 env | sort | cut -d = -f 1")
            #expect(clean.output == "A\nDEFERD_ATTEMPT\nDEFERD_JOB\nDEFERD_RESTARTS\nHOME\nLANG\nPATH\n")
            #expect(try await run("run --clean-env sh -c 'echo $PATH'").output == "/usr/local/bin:/usr/bin:/bin\n")
            // Lists name the command, though its environment is long.
            #expect(try await run("export A=\"$(seq 2000)\"; run true; ctl list").output.contains("true"))
        }
    }

    @Test func messages_nameOptionsAndVerbsThatThereAre() async throws {
        try await Self.with { _, run async throws in
            let gone = try await run("mkdir gone; cd gone; rmdir ../gone; ctl download http://127.0.0.1:1/x")
            #expect(gone.end == .code(65) && gone.errors.contains("that exists, or name an absolute path"))
            _ = try await run(#"mkdir "$(printf 'caf\351')"; ln -s caf* link"#)
            let bytes = try await run("ctl download --retries 0 --to link/x http://127.0.0.1:1/x")
            #expect(bytes.end == .code(65) && bytes.errors.contains(#"caf\xe9" is not UTF-8"#), "\(bytes.errors)")
            let empty = try await run("ctl schedule add x --daily < /dev/null")
            #expect(empty.end == .code(65) && empty.errors.contains("see deferctl help schedule add"))
        }
    }

    @Test func program_isFoundAsAShellFindsIt() async throws {
        try await Self.with { daemon, run async throws in
            let directory = daemon.directory.path + "/work"
            let sub = directory + "/sub"
            // A program that this process writes stays busy while a process of another test has inherited the descriptor.
            _ = try await run(#"mkdir sub; printf '#!/bin/sh\npwd\n' > sub/tool; chmod +x sub/tool"#)
            #expect(try await run("export PATH=\"$PWD/sub:$PATH\"; run tool").output == directory + "\n")
            #expect(try await run("cd sub; run ./tool").output == sub + "\n")
            #expect(try await run("run -C sub ./tool").output == sub + "\n")
            #expect(try await run("run -C sub pwd").output == sub + "\n")
        }
    }

    @Test(arguments: [("/usr/bin/node", "-p '6*7'", "42\n"), ("/usr/bin/java", "-version", "")])
    func justInTimeCompiler_runs(program: String, arguments: String, output: String) async throws {
        guard Files.exists(program) else { return }
        try await Self.with { _, run async throws in
            let (end, printed, errors) = try await run("run \(program) \(arguments)")
            #expect(end == .code(0) && printed == output, "\(errors)")
        }
    }

    @Test(.enabled(if: User.canBeOthers, "Programs of other users need root, setpriv and socat."))
    func daemonOfAnotherUser_getsNothingOfIt() async throws {
        try await Self.with("socket: {mode: \"0666\"}\n") { daemon, run async throws in
            chmod(daemon.directory.path, 0o711)
            let theirs = daemon.directory.path + "/ann"
            mkdir(theirs, 0o755)
            chown(theirs, User.ann.uid, User.ann.uid)
            let listener = try ChildProcess(
                User.ann.command([
                    "/usr/bin/socat", "-d", "-d", "UNIX-LISTEN:\(theirs)/socket,fork", "UNIX-CONNECT:\(daemon.socket)",
                ]))
            defer { listener.send(signal: SIGTERM) }
            try await listener.line(containing: "listening on")
            let script = "umask 027; SOCKET='\(theirs)/socket'; run -e A=1 sh -c 'umask; pwd; echo $TOKEN $A'"
            let (end, output, errors) = try await run(script)
            #expect(end == .code(0), "\(errors)")
            let lines = output.split(separator: "\n")
            #expect(lines.count == 3 && lines.first == "0077" && lines.last == "1", "\(output)")
            #expect(lines.dropFirst().first?.contains("/programs/") == true, "\(output)")
        }
    }

    @Test func valuesOfVariables_areInNoAnswer_eventOrLog() async throws {
        try await Self.with("log: {level: trace}\n") { daemon, _ async throws in
            let wire = try daemon.connect()
            _ = try await wire.call("job.watch", ["all": true, "children": true])
            func program(_ script: String) -> JSON {
                [
                    "type": "program", "command": ["/bin/sh", "-c", .string(script)],
                    "environment": ["TOKEN": "s3cret"],
                ]
            }
            let spec: JSON = [
                "source": program("[ -n \"$TOKEN\" ]"), "then": [["then": ["source": program("exit 3")]]],
            ]
            let list: JSON = ["source": ["type": "list", "jobs": [spec]]]
            var answers = [try await wire.call("job.explain", list)]
            for spec in [spec, list] {
                let id = try await wire.submit(spec)
                answers.append(try await wire.wait(id))
                answers.append(try await wire.call("job.get", .job(id)))
                answers.append(try await wire.call("job.list", ["parent": JSON(id)]))
            }
            answers.append(try await wire.call("job.list"))
            let schedule: JSON = ["schedule": "s", "spec": spec, "every": 1000]
            answers.append(try await wire.call("schedule.set", schedule))
            answers.append(try await wire.call("schedule.list"))
            wire.finishWriting()
            let events = try await wire.rest().map(\.text).joined()
            #expect(events.contains("\"TOKEN\":\"***\"") && !events.contains("s3cret"), "\(events)")
            let shown = answers.filter { $0.description.contains("\"TOKEN\":\"***\"") }
            #expect(shown.count == 9 && !answers.description.contains("s3cret"), "\(answers)")
            #expect(!daemon.process.errorText.contains("s3cret"))
        }
    }

    // MARK: - Bytes

    @Test func argumentsThatAreNotUTF8_areRefused_notReplaced() async throws {
        try await Self.with { daemon, run async throws in
            let odd = "odd=$(printf 'a\\351'); "
            let (_, names, _) = try await run(odd + "touch \"$odd\" \"$(printf 'a\\357\\277\\275')\"; ls | wc -l")
            #expect(names.hasPrefix("2"))
            for command in [
                "run rm \"$odd\"", "run -e \"A=$odd\" true", "run -C \"$odd\" true",
                "ctl upload \"$odd\" http://127.0.0.1:1/", "ctl submit \"$odd\"",
            ] {
                let (end, _, errors) = try await run(odd + command)
                #expect(end == .code(65) && errors.contains(#"a\xe9" is not UTF-8"#), "\(command): \(errors)")
            }
            #expect(try await run("ls | wc -l").output.hasPrefix("2"))
            // The shell that is run finds it.
            #expect(try await run("run sh -c 'rm a?'; ls | wc -l").output.hasPrefix("1"))
            let (_, output, errors) = try await run(odd + "export BAD=\"$odd\"; run sh -c 'echo \"[$BAD]\"'")
            #expect(output == "[]\n" && errors.contains("not UTF-8: BAD"), "\(errors)")
            let elsewhere = try await run(odd + "mkdir \"d$odd\" && cd \"d$odd\" && run pwd")
            #expect(elsewhere.end == .code(65) && elsewhere.errors.contains(#"da\xe9""#), "\(elsewhere.errors)")
            #expect(try await daemon.connect().call("job.list")["jobs"]?.array?.count == 2)
        }
    }

    @Test func directoryThatIsGone_isAnError() async throws {
        try await Self.with { _, run async throws in
            for command in ["./x", "pwd", "-C . pwd"] {
                let (end, output, errors) = try await run("mkdir gone; cd gone; rmdir ../gone; run \(command)")
                #expect(end == .code(65) && output.isEmpty && errors.contains("current directory"), "\(errors)")
            }
            #expect(try await run("mkdir gone; cd gone; rmdir ../gone; run -C /usr pwd").output == "/usr\n")
        }
    }

    @Test func bracesAndManyArguments_arriveAsTyped() async throws {
        try await Self.with { daemon, run async throws in
            let script = #"mkdir '{{x}}'; cd '{{x}}'; run -e 'A={{input}}' sh -c 'echo "$A $1 $2"; pwd' sh '{{x' '\{{'"#
            #expect(try await run(script).output == "{{input}} {{x \\{{\n\(daemon.directory.path)/work/{{x}}\n")
            let numbers = (1...1200).map(String.init).joined(separator: " ") + "\n"
            #expect(try await run("run echo $(seq 1200)").output == numbers)
        }
    }

    @Test func standardInput_isPassedOnAsItIs() async throws {
        try await Self.with { _, run async throws in
            #expect(try await run("printf '{{input}}\\n\"' | run --stdin od -An -c").output.contains("{   {   i"))
            let bytes = try await run("printf 'a\\351\\000\\n' | run --stdin od -An -tx1")
            #expect(bytes.output == " 61 e9 00 0a\n")
            #expect(try await run("run --stdin wc -c < /dev/null").output == "0\n")
            #expect(try await run("run --input '\"a\"' wc -c").output == "1\n")
            let long = try await run("head -c 2000000 /dev/zero | tr '\\0' x | run --stdin wc -c")
            #expect(long.end == .code(65) && long.errors.contains("limits.line"), "\(long.errors)")
        }
    }
}
