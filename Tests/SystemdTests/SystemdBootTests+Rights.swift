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

    private static let openToAll = ["deferd.socket.d/open.conf": "[Socket]\nSocketMode=0666\n"]

    /// A server of a few bytes at 127.0.0.1:8080, which logs the headers that it gets.
    static let origin = [
        "origin.socket": "[Socket]\nListenStream=127.0.0.1:8080\nAccept=yes\n",
        "origin@.service": #"""
        [Service]
        StandardInput=socket
        StandardError=journal
        ExecStart=/bin/bash --norc -c 'while read -r line && [ "$${#line}" -gt 1 ]; do echo "$$line" \
            >>/run/origin.log; done; printf "HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\nConnection: close\\r\\n\\r\\nbytes"'

        """#,
    ]

    /// The daemon has only its own rights, and lends them to no user.
    @Test func absoluteRoot_isUsed_whereBothCallerAndDaemonMay() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            useradd --uid 4711 ann; useradd --uid 4712 bob
            root=/srv/files; install -d -m 755 $root; mkdir -p /etc/deferd
            printf 'downloads:\n  roots: [/srv/files]\n' >/etc/deferd/deferd.yaml
            install -d -m 777 $root/open
            install -d -m 700 -o ann -g ann $root/anns
            install -d -m 700 -o deferd -g deferd $root/deferds
            install -d -m 770 -o ann -g deferd $root/shared
            systemctl start origin.socket deferd.service
            as() { setpriv --reuid "$1" --regid "$1" --init-groups "${@:2}"; }
            get() {
              if as "$1" deferctl --socket "$socket" download http://127.0.0.1:8080/file --to "$root/$2" >/dev/null 2>&1
              then say "$1" "$2"; else say "$1" "not $2"; fi
            }
            for path in open/a open/deep/a anns/a deferds/a shared/a; do get ann $path; done
            for path in shared/b open/b open/deep/b; do get bob $path; done
            say read "$(as ann cat $root/open/a) $(as ann cat $root/open/deep/a) $(stat --format %U $root/open/a)"
            as bob cat $root/open/a 2>/dev/null || say other refused
            say left "$(ls $root/anns $root/deferds | grep -c a$)"
            """#,
            files: Self.openToAll.merging(Self.origin) { own, _ in own }.merging([
                "deferd.service.d/roots.conf": "[Service]\nReadWritePaths=/srv/files\n"
            ]) { own, _ in own }
        )
        #expect(transcript.said("ann") == ["open/a", "open/deep/a", "not anns/a", "not deferds/a", "shared/a"])
        // A directory that was made for Ann is hers.
        #expect(transcript.said("bob") == ["not shared/b", "open/b", "not open/deep/b"])
        #expect(transcript.said("read") == ["bytes bytes deferd"])
        #expect(transcript.said("other") == ["refused"])
        #expect(transcript.said("left") == ["0"])
    }

    @Test func download_isReadByItsCallerOnly() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            useradd owner; useradd stranger
            systemctl start origin.socket deferd.service
            as() { setpriv --reuid "$1" --regid "$1" --init-groups "${@:2}"; }
            as owner deferctl --socket "$socket" download http://127.0.0.1:8080/file --to file.bin >/dev/null
            file=$(find /var/lib/deferd/downloads -name file.bin)
            say owner "$(as owner cat "$file") $(stat --format %U "$file")"
            as owner sh -c 'echo more >>"$1" && mkdir "$(dirname "$1")/new"' - "$file" && say owner changed
            as stranger cat "$file" 2>/dev/null || say stranger refused
            as stranger ls "$(dirname "$file")" 2>/dev/null || say listing refused
            """#,
            files: Self.openToAll.merging(Self.origin) { own, _ in own }
        )
        #expect(transcript.said("owner") == ["bytes deferd", "changed"])
        #expect(transcript.said("stranger") == ["refused"])
        #expect(transcript.said("listing") == ["refused"])
    }
}
