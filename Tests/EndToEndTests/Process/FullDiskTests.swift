import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// A small disk of the daemon's own that is full.
@Suite(.enabled(if: geteuid() == 0 && Files.exists("/usr/bin/unshare"))) struct FullDiskTests {
    /// Runs a command with a disk of `size` at the state directory, after running `first` there.
    private func wrapper(_ directory: TemporaryDirectory, size: String, first: String = ":") throws -> [String] {
        let state = directory.path + "/state"
        try #require(mkdir(state, 0o700) == 0 || errno == EEXIST)
        let script = "mount -t tmpfs -o size=\(size) tmpfs \"$0\" && cd \"$0\" && { \(first); } && cd / && exec \"$@\""
        return ["/usr/bin/unshare", "-m", "/bin/sh", "-c", script, state]
    }

    @Test func removal_works_andMakesRoom_whenTheDiskIsFull() async throws {
        try await Household.with { household in
            let daemon = try await household.start(
                configuration: "downloads:\n  minimumFree: 0\n",
                wrapper: try wrapper(household.directory, size: "12m"))
            let wire = try daemon.connect()
            let large = JSON.string(String(repeating: "x", count: 200_000))
            var finished: [Int] = []
            for _ in 0..<4 { finished.append(try await wire.submit(.value(large))) }
            for id in finished { _ = try await wire.wait(id) }
            let list = try await wire.submit([
                "source": ["type": "each", "in": .array((0..<300).map { JSON($0) }), "job": .value("{{item}}")]
            ])
            _ = try await wire.wait(list)
            var refusal: Wire.Refusal?
            for _ in 0..<100 where refusal == nil {
                do { _ = try await wire.submit(.value(large, ["delay": 1000])) } catch let error as Wire.Refusal {
                    refusal = error
                }
            }
            #expect(refusal?.code == -32008, "the disk must become full")
            // Other writers fill the rest of it.
            let filler = "/proc/\(daemon.pid)/root" + daemon.state + "/filler"
            let (_, _, said) = try await ChildProcess.run(["/bin/dd", "if=/dev/zero", "of=" + filler, "bs=4096"])
            #expect(said.contains("No space left"), "\(said)")
            refusal = nil
            for _ in 0..<1000 where refusal == nil {
                let page = JSON.string(String(repeating: "x", count: 4000))
                do { _ = try await wire.submit(.value(page, ["delay": 1000])) } catch let error as Wire.Refusal {
                    refusal = error
                }
            }
            #expect(refusal?.code == -32008)
            for id in [list] + finished { _ = try await wire.call("job.remove", .job(id)) }
            #expect(try await wire.run(.value(large))["state"] == "succeeded")
            #expect(try await wire.refusal("job.get", .job(finished[0])).code == -32001)
            try await daemon.stop()
        }
    }

    @Test func start_isToBeTriedAgain_whenThereIsNoRoom() async throws {
        try await TemporaryDirectory.with { directory in
            for first in ["dd if=/dev/zero of=filler bs=4096 2>/dev/null || :", "head -c 60000 /dev/zero > filler"] {
                let command = try wrapper(directory, size: "64k", first: first) + Daemon.command(in: directory)
                let (end, _, errors) = try await ChildProcess.run(command)
                #expect(end == .code(75), "\(errors)")
                #expect(errors.contains(directory.path + "/state"), "\(errors)")
            }
        }
    }

    @Test func output_countsAsOmitted_whenItsLogCannotBeBegun() async throws {
        try await Household.with { household in
            let daemon = try await household.start(
                configuration: "downloads: {minimumFree: 0}\nprograms: {any: true}\n",
                wrapper: try wrapper(household.directory, size: "12m"))
            let wire = try daemon.connect()
            let gate = household.directory.path + "/gate"
            let script = "until [ -e \(gate) ]; do sleep 0.05; done; echo out; echo err >&2"
            _ = try await wire.call("job.watch", ["all": true])
            let id = try await wire.submit([
                "source": ["type": "program", "command": ["/bin/sh", "-c", .string(script)]]
            ])
            _ = try await wire.state("running", of: id)
            let filler = "/proc/\(daemon.pid)/root" + daemon.state + "/filler"
            let (_, _, said) = try await ChildProcess.run(["/bin/dd", "if=/dev/zero", "of=" + filler, "bs=4096"])
            #expect(said.contains("No space left"), "\(said)")
            try Data().write(to: URL(fileURLWithPath: gate))
            let result = try await wire.wait(id)["result"]
            #expect(result == ["exit": 0, "output": "out", "size": 4, "omitted": 8])
            #expect(
                try await wire.call("job.output", JSON.job(id).with(["attempt": 1]))
                    == ["records": [], "next": 8, "end": true, "omitted": 8])
            #expect(try await wire.call("job.result", .job(id))["data"] == .string(Base64.encode(Array("out\n".utf8))))
            try await daemon.stop()
        }
    }

    /// Leaves this many bytes free on the disk of the state directory.
    private func fill(_ daemon: Daemon, with megabytes: Int) async throws {
        let filler = "/proc/\(daemon.pid)/root" + daemon.state + "/filler"
        let arguments = ["/bin/dd", "if=/dev/zero", "of=" + filler, "bs=1M", "count=\(megabytes)"]
        #expect(try await ChildProcess.run(arguments).0 == .code(0))
    }

    @Test func jobs_areRefused_andRemoved_whenLittleRoomIsLeft() async throws {
        try await Household.with { household in
            let daemon = try await household.start(
                configuration: "downloads:\n  minimumFree: 20000000\n",
                wrapper: try wrapper(household.directory, size: "32m"))
            let wire = try daemon.connect()
            let id = try await wire.submit(.value(1))
            _ = try await wire.wait(id)
            try await fill(daemon, with: 18)
            // The first ones may come before the daemon has looked.
            var refusal: Wire.Refusal?
            while refusal == nil {
                do { _ = try await wire.submit(.value(1)) } catch let error as Wire.Refusal { refusal = error }
            }
            #expect(refusal?.code == -32008)
            try await daemon.process.line(containing: "No new jobs until there is room")
            _ = try await wire.call("job.remove", .job(id))
            try await fill(daemon, with: 1)
            try await daemon.process.line(containing: "There is room for new jobs again")
            #expect(try await wire.run(.value(1))["state"] == "succeeded")
            try await daemon.stop()
        }
    }

    @Test func doctor_tellsDownloadsThatWaitForRoom() async throws {
        try await Household.with { household in
            // Submissions continue, because more than half of it is free.
            let state = household.directory.path + "/state"
            let daemon = try await household.start(
                configuration: "downloads:\n  minimumFree: 24000000\n",
                flags: ["--downloads-directory", state + "/downloads"],
                wrapper: try wrapper(household.directory, size: "32m"))
            try await fill(daemon, with: 8)
            let wire = try daemon.connect()
            func doctor() async throws -> String {
                try await ChildProcess.run([BuiltProgram.deferctl, "--socket", daemon.socket, "doctor"]).1
            }
            #expect(try await doctor().contains("No job waits for room on a disk."))
            func download(_ path: String) -> JSON {
                ["source": ["type": "download", "url": "http://127.0.0.1:9/", "path": .string(path)]]
            }
            _ = try await wire.call("job.watch", ["all": true, "children": true])
            let id = try await wire.submit(download("a"))
            let list = try await wire.submit(["source": ["type": "list", "jobs": [download("b"), download("c")]]])
            for job in [id, list + 1, list + 2] { _ = try await wire.state("scheduled", of: job) }
            let found = try await doctor()
            #expect(found.contains("3 jobs wait until a disk has room"), "\(found)")
            #expect(found.contains("Job \(id): \"\(state)/downloads") && found.contains("make room."), "\(found)")
            for job in [id, list] { _ = try await wire.call("job.cancel", .job(job)) }
            try await daemon.stop()
        }
    }
}
