import Foundation
import TestSupport
import Testing

/// The built daemon with sockets that a unit passes it.
@Suite struct SeveralSocketsTests {
    private static let deferd =
        URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "deferd").path

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: deferd), "deferd is not built"))
    func start_isRefused_whenSeveralSocketsArePassed() async throws {
        let sockets = try (0..<2).map { _ in try PassedSocket(.stream, listening: true) }
        try await TemporaryDirectory.with { directory in
            let run = try SystemProgram(
                [
                    "/bin/sh", "-c",
                    #"exec 3<&0 4<&1 </dev/null >/dev/null; LISTEN_PID=$$ exec "$0" "$@""#,
                    Self.deferd, "--config", try directory.write("", to: "deferd.yaml"), "--state-directory",
                    directory.path + "/state", "--downloads-directory", directory.path + "/downloads",
                ], environment: ["LISTEN_FDS": "2", "LISTEN_FDNAMES": "deferd:deferd"],
                input: sockets[0].descriptor, output: sockets[1].descriptor)
            withExtendedLifetime(sockets) {}
            #expect(run.status == 78, "\(run.errorText)")
            #expect(run.errorText.contains("several sockets"), "\(run.errorText)")
        }
    }
}
