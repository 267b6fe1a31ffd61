import Foundation
import TestSupport
import Testing

/// `debian/postrm` as dpkg runs it, in directories of the test in place of /var/lib, /run and /etc.
@Suite(
    .enabled(
        if: geteuid() == 0 && FileManager.default.isExecutableFile(atPath: "/usr/bin/unshare"),
        "mounting needs root and unshare"))
struct PurgeTests {
    /// Runs `script` after a purge, with one disk at the state directory's `mounted`.
    private func afterPurge(_ script: String) throws -> SystemProgram {
        let postrm = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../debian/postrm").standardized.path
        let run = try SystemProgram([
            "/usr/bin/unshare", "-m", "/bin/sh", "-euc",
            #"""
            mount --make-rprivate /
            exec 3<"$0"
            users=$(cat /etc/passwd) groups=$(cat /etc/group)
            for directory in /var/lib /run /etc; do mount -t tmpfs -o mode=755 tmpfs $directory; done
            { echo "$users" | grep -v ^deferd: || :; echo deferd:x:64123:64123::/var/lib/deferd:/bin/false; } >/etc/passwd
            { echo "$groups" | grep -v ^deferd: || :; echo deferd:x:64123:; } >/etc/group
            mkdir -p /var/lib/deferd/downloads/1000 /var/lib/deferd/mounted /var/lib/other /run/deferd
            touch /var/lib/deferd/deferd.db /var/lib/deferd/downloads/1000/file /var/lib/other/file /run/deferd/socket
            mount -t tmpfs tmpfs /var/lib/deferd/mounted; echo kept >/var/lib/deferd/mounted/file
            sh /proc/self/fd/3 purge
            """# + "\n" + script, postrm,
        ])
        #expect(run.status == 0, "\(run.errorText)")
        return run
    }

    @Test func purge_removesTheState_andStopsAtMounts() throws {
        let run = try afterPurge("cd /; find /var/lib /run -type f | sort; cat /var/lib/deferd/mounted/file")
        #expect(run.outputText == "/var/lib/deferd/mounted/file\n/var/lib/other/file\nkept\n")
    }

    /// The package cannot tell a user that it created from one that existed before.
    @Test func purge_leavesTheUser() throws {
        let run = try afterPurge("grep -c ^deferd: /etc/passwd /etc/group")
        #expect(run.outputText == "/etc/passwd:1\n/etc/group:1\n")
    }
}
