import Testing

/// What the daemon and its users may do under the shipped units.
extension SystemdBootTests {
    @Test func sandbox_holds_whenTheDaemonRuns() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            systemctl start deferd.service
            main=$(show MainPID)
            field() { grep "^$1:" "/proc/$main/status" | cut -f 2; }
            say capabilities "$(field CapEff) $(field CapBnd) $(field CapAmb)"
            say privileges "$(field NoNewPrivs) $(field Seccomp) $(field Umask)"
            inside() { nsenter --target "$main" --mount -- "$@" 2>/dev/null; }
            for path in / /etc /usr/local /home /root /var/log; do
              inside touch "$path/deferd-was-here" && say writable "$path"
            done
            for path in /var/lib/deferd; do inside touch "$path/probe" || say unwritable "$path"; done
            say user "$(stat --format %U "/proc/$main") $(stat --format '%U %U' /var/lib/deferd) $(stat --format %U "$socket")"
            inside cp /bin/true /var/lib/deferd/probe; inside /var/lib/deferd/probe && say executable /var/lib/deferd
            say state "$(stat --format %a /var/lib/deferd) $(stat --format %a /run/deferd)"
            find /var/lib/deferd -type f ! -name probe -perm /077 | sed 's/^/exposed: /'
            """#
        )
        #expect(transcript.said("capabilities") == ["0000000000000000 0000000000000000 0000000000000000"])
        #expect(transcript.said("user") == ["deferd deferd deferd root"])
        #expect(transcript.said("privileges") == ["1 2 0077"])
        #expect(transcript.said("writable").isEmpty)
        #expect(transcript.said("unwritable").isEmpty)
        #expect(transcript.said("executable").isEmpty)
        #expect(transcript.said("state") == ["711 755"])
        #expect(transcript.said("exposed").isEmpty)
    }

    @Test func userInstance_answersItsUser_whenActivatedByItsSocket() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            useradd --create-home --uid 4711 owner
            install -d -o owner -g owner -m 700 /run/user/4711
            cp -r /etc/systemd/system/user/. /etc/systemd/user/
            systemctl start user@4711.service
            export HOME=/home/owner XDG_RUNTIME_DIR=/run/user/4711
            as() { setpriv --reuid owner --regid owner --init-groups "$@"; }
            as systemctl --user start deferd.socket
            socket=/run/user/4711/deferd/deferd.sock
            say file "$(stat --format '%a %U' "$socket") $(stat --format %a "${socket%/*}")"
            as deferctl --socket "$socket" info --json | sed 's/^/info: /'
            main=$(as systemctl --user show --property MainPID --value deferd.service)
            say owner "$(stat --format %U "/proc/$main")"
            cd /home/owner
            say ran "$(A=1 as deferctl --socket "$socket" run -q sh -c \
              'echo $A $PWD $(grep -E "NoNewPrivs|Seccomp:" /proc/self/status | cut -f 2)')"
            as systemctl --user stop deferd.service
            say result "$(as systemctl --user show --property Result --value deferd.service)"
            """#,
            // There is no login here that would set the directory.
            files: ["user@.service.d/directory.conf": "[Service]\nEnvironment=XDG_RUNTIME_DIR=/run/user/%i\n"]
        )
        #expect(transcript.said("file") == ["600 owner 700"])
        #expect(transcript.said("info").count == 1)
        #expect(transcript.said("owner") == ["owner"])
        // The socket's peer is the user's manager. Nothing confines the command.
        #expect(transcript.said("ran") == ["1 /home/owner 0 0"])
        #expect(transcript.said("result") == ["success"])
    }
}
