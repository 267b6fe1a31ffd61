import Foundation
import Testing

/// The built programs under the shipped units and a real systemd.
@Suite(
    .serialized,
    .enabled(if: BootedSystem.obstacle == nil, Comment(rawValue: BootedSystem.obstacle ?? "")),
    .timeLimit(.minutes(10))
)
struct SystemdBootTests {
    @Test func units_areFreeOfDefects_whenVerified() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            systemd-analyze verify --man=no deferd.service deferd.socket 2>&1 | sed 's/^/verify: /'
            export XDG_RUNTIME_DIR=/run
            systemd-analyze verify --man=no --user /etc/systemd/system/user/deferd.{service,socket} 2>&1 | sed 's/^/verify: /'
            say exposure "$(systemd-analyze security --threshold=15 deferd.service | tail -n 1)"
            """#
        )
        #expect(transcript.said("verify").isEmpty)
        #expect(transcript.said("exposure").first?.contains("OK") == true)
    }

    @Test func start_isDoneOnlyOnceRequestsAreAnswered() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            systemctl start deferd.service
            say main "$(show MainPID)"
            say status "$(show StatusText)"
            say answering "$(answering)"
            say state "$(show ActiveState) $(show SubState)"
            awaiting 'Got notification message.*READY=1' | sed 's/^/ready: /'
            """#
        )
        #expect(transcript.said("state") == ["active running"])
        #expect(transcript.said("answering") == transcript.said("main"))
        #expect(transcript.said("status").first?.isEmpty == false)
        #expect(transcript.said("ready").count == 1)
    }

    @Test func start_fails_whenTheStoreCannotBeMade() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            mkdir -m 711 /var/lib/deferd
            mount -t tmpfs -o mode=711,nr_inodes=1 tmpfs /var/lib/deferd  # a full disk
            systemctl stop deferd.socket
            systemctl start deferd.service || say start failed
            systemctl stop deferd.socket deferd.service
            journalctl --sync
            say ready "$(journalctl --output cat --grep 'READY=1' | wc -l)"
            say told "$(journalctl --identifier deferd --priority err --output cat | wc -l)"
            """#
        )
        #expect(transcript.said("start") == ["failed"])
        #expect(transcript.said("ready") == ["0"])
        #expect(try Int(#require(transcript.said("told").first)) != 0)
    }

    @Test func socket_keepsConnections_whenTheyAreMadeBeforeTheStart() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            systemctl start deferd.socket
            say before "$(show ActiveState)"
            say file "$(stat --format '%F %a %U' "$socket")"
            answering >first & one=$!
            answering >second & two=$!
            wait $one; wait $two
            say answers "$(show MainPID) $(cat first) $(cat second)"
            systemctl stop deferd.service
            say stopped "$(show ActiveState)"
            say again "$(answering)"
            say main "$(show MainPID)"
            """#
        )
        #expect(transcript.said("before") == ["inactive"])
        #expect(transcript.said("file") == ["socket 660 root"])
        let answers = try #require(transcript.said("answers").first).split(separator: " ")
        #expect(answers.count == 3 && Set(answers).count == 1)
        #expect(transcript.said("stopped") == ["inactive"])
        #expect(transcript.said("again") == transcript.said("main"))
    }

    @Test func socket_isOpenToItsGroup_whenTheDropInIsInstalled() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            mkdir -p /etc/systemd/system/deferd.socket.d
            cp /etc/systemd/system/deferd-group.conf /etc/systemd/system/deferd.socket.d/group.conf
            systemctl daemon-reload
            useradd --groups deferd member; useradd stranger
            systemctl start deferd.service
            say file "$(stat --format '%a %U:%G' "$socket")"
            as() { setpriv --reuid "$1" --regid "$1" --init-groups deferctl --socket "$socket" info; }
            as member >/dev/null && say member admitted
            as stranger || say stranger "$?"
            """#
        )
        #expect(transcript.said("file") == ["660 root:deferd"])
        #expect(transcript.said("member") == ["admitted"])
        #expect(transcript.said("stranger").count == 1)
    }

    @Test func watchdog_bringsTheDaemonBack_whenItHangs() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            systemctl start deferd.service
            old=$(show MainPID)
            job=$(submit '{"source": {"type": "timer", "seconds": 3}, "then": [{"then": {"return": "gone on"}}]}')
            awaiting "Got notification message from PID $old \(WATCHDOG=1"
            kill -STOP "$old"
            awaiting 'Scheduled restart job'
            new=$(answering)
            say restarts "$(show NRestarts)"
            say main "$old $new $(show MainPID)"
            say cause "$(awaiting 'Failed with result')"
            say job "$(client wait "$job" --json | grep -o 'gone on' | head -n 1)"
            """#,
            files: ["deferd.service.d/watchdog.conf": "[Service]\nWatchdogSec=10\n"]
        )
        #expect(transcript.said("restarts") == ["1"])
        let processes = try #require(transcript.said("main").first).split(separator: " ")
        #expect(processes.count == 3 && processes[0] != processes[1] && processes[1] == processes[2])
        #expect(transcript.said("cause").first?.contains("'watchdog'") == true)
        #expect(transcript.said("job") == ["gone on"])
    }

    @Test func stop_isCleanAndKeepsJobs_whenTheyAreUnfinished() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            systemctl start deferd.service
            job=$(submit '{"source": {"type": "timer", "seconds": 3600}}')
            systemctl stop deferd.service
            say result "$(show Result) $(show ExecMainCode) $(show ExecMainStatus)"
            say stopping "$(awaiting 'Got notification message.*STOPPING=1')"
            systemctl start deferd.service
            say job "$(client show "$job" --json | sed -nE '1s/.*"state" ?: ?"([a-z]+)".*/\1/p')"
            """#
        )
        #expect(transcript.said("result") == ["success 1 0"])
        #expect(transcript.said("stopping").count == 1)
        #expect(["queued", "running"].contains(transcript.said("job").first))
    }

    @Test func reload_keepsTheProcess_whenAskedByTheManager() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            systemctl start deferd.service
            old=$(show MainPID)
            systemctl reload deferd.service
            awaiting "Got notification message from PID $old \(RELOADING=1, MONOTONIC_USEC=[0-9]+"
            awaiting "from PID $old \(READY=1" 2
            say main "$old $(show MainPID) $(answering)"
            say state "$(show ActiveState) $(show ReloadResult)"
            """#
        )
        let processes = try #require(transcript.said("main").first).split(separator: " ")
        #expect(processes.count == 3 && Set(processes).count == 1)
        #expect(transcript.said("state") == ["active success"])
    }

    @Test func start_isNotRepeated_whenTheConfigurationIsWrong() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            systemctl start deferd.service || say start failed
            say result "$(show ExecMainStatus) $(show NRestarts) $(show SubState)"
            """#,
            files: ["deferd.service.d/wrong.conf": "[Service]\nEnvironment=DEFERD_LIMITS_LINE=wide\n"]
        )
        #expect(transcript.said("start") == ["failed"])
        #expect(transcript.said("result") == ["78 0 failed"])
    }

    @Test func journal_getsFieldsFromTheDaemonItself_whenItLogs() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            # What the manager's child says before it becomes the daemon would stick in the journal as its identity.
            systemctl log-level info
            systemctl start deferd.service
            systemctl stop deferd.service
            journalctl --sync
            journalctl --identifier deferd --output json | sed 's/^/entry: /'
            """#
        )
        let entries = try transcript.said("entry").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        let own = entries.filter { $0["_TRANSPORT"] as? String == "journal" }
        #expect(!own.isEmpty)
        let printed = entries.filter { $0["_TRANSPORT"] as? String == "stdout" }
        #expect(printed.isEmpty, "these bypassed the log handler: \(printed.compactMap { $0["MESSAGE"] })")
        for entry in own {
            #expect(entry["_SYSTEMD_UNIT"] as? String == "deferd.service")
            #expect((entry["PRIORITY"] as? String).map { "234567".contains($0) } == true)
            #expect((entry["CODE_FILE"] as? String)?.hasSuffix(".swift") == true)
            #expect((entry["CODE_LINE"] as? String).flatMap { Int($0) } != nil)
            #expect(entry["CODE_FUNC"] is String && entry["MESSAGE"] is String)
        }
        #expect(own.contains { $0.keys.contains { $0.hasPrefix("DEFERD_") } })
    }

    /// One boot for an administrator's operations on a running daemon: credentials, the journal, reloads.
    @Test func administrator_seesAndChangesWhatRuns() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            mkdir -p /etc/deferd
            configure() { printf '%s\n' "$@" >/etc/deferd/deferd.yaml; }
            credentials=('http:' '  credentials:' '    127.0.0.1:8080: {header: X-Token, credential: token, insecure: true}')
            configure "${credentials[@]}"
            install -m 600 /dev/null /etc/deferd/token; echo 'the secret' >/etc/deferd/token
            systemctl start origin.socket deferd.service
            main=$(show MainPID)

            job=$(submit '{"source": {"type": "url", "url": "http://127.0.0.1:8080/file"}}')
            say result "$(client wait "$job" --json | grep -c '"state" \?: \?"succeeded"')"
            say header "$(grep -ci '^x-token: the secret' /run/origin.log)"
            lost=$(submit '{"source": {"type": "url", "url": "http://127.0.0.1:9/"}, "retry": {"max": 0}}')
            client wait "$lost" --json >/dev/null || true

            # A connection that stays open over the reloads.
            coproc wire { timeout 50 perl -MIO::Socket::UNIX -e '$| = 1;
              $daemon = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die;
              while (<STDIN>) { print $daemon $_; $daemon->flush; print scalar <$daemon> }' "$socket"; }
            links() {
              echo '{"jsonrpc": "2.0", "id": 1, "method": "server.info"}' >&"${wire[1]}"
              read -r -u "${wire[0]}" line
              say links "$(grep -oE '"links" ?: ?[0-9]+' <<<"$line" | grep -oE '[0-9]+')"
            }
            links
            configure "${credentials[@]}" 'limits:' '  links: 7' 'socket:' '  mode: "0666"'
            systemctl reload deferd.service
            awaiting 'The configuration was reloaded' >/dev/null
            links
            configure "${credentials[@]}" 'limits:' '  links: many'
            systemctl reload deferd.service
            awaiting 'The new configuration was not applied' >/dev/null
            links
            say status "$(show StatusText)"
            say main "$main $(show MainPID)"

            journalctl --sync
            journalctl DEFERD_JOB="$job" --output json | sed 's/^/story: /'
            journalctl DEFERD_JOB="$lost" --output json | sed 's/^/lost: /'
            for id in 3ceaaf30814248ea91d93080f9b439fc 6fced11d2bd841e6847a8387cdde8d51 3a124c647e024f05b7c1dce27f7695f5; do
              say event "$(journalctl MESSAGE_ID=$id --output cat | wc -l)"
            done
            say waiting "$(journalctl DEFERD_KEY=socket.mode --output cat | wc -l)"
            say printed "$(journalctl --identifier deferd --identifier deferctl --output cat \
              _TRANSPORT=stdout _TRANSPORT=syslog)"
            say leaked "$(journalctl --output cat | grep -c 'the secret')$(grep -rlc 'the secret' /var/lib/deferd | wc -l)"
            """#,
            files: Self.origin.merging([
                "deferd.service.d/credentials.conf": "[Service]\nLoadCredential=token:/etc/deferd/token\n"
            ]) { own, _ in own }
        )
        #expect(transcript.said("result") == ["1"])
        #expect(transcript.said("header") == ["1"])
        #expect(transcript.said("leaked") == ["00"])
        #expect(transcript.said("links") == ["100", "7", "7"])
        #expect(transcript.said("status").first?.contains("/etc/deferd/deferd.yaml:5: limits.links") == true)
        let processes = try #require(transcript.said("main").first).split(separator: " ")
        #expect(processes.count == 2 && Set(processes).count == 1)
        #expect(transcript.said("event") == ["1", "1", "1"])
        #expect(transcript.said("waiting") == ["1"])
        #expect(transcript.said("printed") == [""], "libdispatch complains of priorities, for example")
        func entries(_ name: String) throws -> [[String: Any]] {
            try transcript.said(name).map {
                try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
        }
        let story = try entries("story")
        let messages = story.compactMap { ($0["MESSAGE"] as? String)?.split(separator: " ").dropFirst(2).first }
        #expect(messages == ["was", "runs", "succeeded."])
        for entry in story {
            #expect(entry["DEFERD_OWNER"] as? String == "0" && entry["PRIORITY"] as? String == "6")
            #expect(entry["DEFERD_HOST"] as? String == "127.0.0.1:8080")
            #expect((entry["CODE_FILE"] as? String)?.hasSuffix(".swift") == true)
        }
        let failure = try #require(try entries("lost").last)
        #expect(failure["MESSAGE_ID"] as? String == "ab57f985433243daa75a2e199b58ba8d")
        #expect(failure["DEFERD_KIND"] as? String == "connect")
    }

    /// With the socket unit, and with a socket that the service manager keeps for a daemon that made it itself.
    @Test func restart_losesNoConnection_underLoad() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            # Asks again and again until told to stop, more than ten times on a slow machine too; says how many got no answer.
            load() {
              local lost=0 count=0
              until [ -e "/run/over-$1" ] && [ "$count" -gt 10 ]; do
                deferctl --socket "$2" info --json >/dev/null 2>>/run/lost || lost=$((lost + 1))
                count=$((count + 1))
              done
              say "$1" "$lost of many"
            }
            restart() {
              for round in 1 2 3 4 5 6 7 8 9 10; do
                old=$(show MainPID "$1")
                systemctl restart "$1"
                say restarted "$([ "$old" = "$(show MainPID "$1")" ] || echo yes)"
              done
            }
            systemctl start deferd.service
            load activated "$socket" & one=$!
            load activated "$socket" & two=$!
            restart deferd.service
            touch /run/over-activated; wait $one; wait $two

            systemctl start alone.service
            load kept /run/alone/socket & one=$!
            load kept /run/alone/socket & two=$!
            restart alone.service
            touch /run/over-kept; wait $one; wait $two
            say inode "$(stat --format %F /run/alone/socket)"
            systemctl stop alone.service
            cat /run/lost | sed 's/^/error: /'
            """#,
            files: [
                "deferd.service.d/limit.conf": "[Unit]\nStartLimitIntervalSec=0\n",
                "alone.service": """
                [Unit]
                StartLimitIntervalSec=0
                [Service]
                Type=notify
                User=deferd
                ExecStart=/usr/local/bin/deferd --instance system --socket /run/alone/socket --state-directory /var/lib/alone
                FileDescriptorStoreMax=1
                Environment=FDSTORE=1
                RuntimeDirectory=alone
                RuntimeDirectoryPreserve=restart
                StateDirectory=alone

                """,
            ]
        )
        #expect(transcript.said("activated") == ["0 of many", "0 of many"], "\(transcript.said("error"))")
        #expect(transcript.said("kept") == ["0 of many", "0 of many"], "\(transcript.said("error"))")
        #expect(transcript.said("restarted").count == 20 && transcript.said("restarted").allSatisfy { $0 == "yes" })
        #expect(transcript.said("inode") == ["socket"])
    }
}
