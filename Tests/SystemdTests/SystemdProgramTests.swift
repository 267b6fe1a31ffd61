import Foundation
import Testing

/// Programs as the system's service runs them, under the shipped units and a real systemd.
@Suite(
    .serialized,
    .enabled(if: BootedSystem.obstacle == nil, Comment(rawValue: BootedSystem.obstacle ?? "")),
    .timeLimit(.minutes(10))
)
struct SystemdProgramTests {
    @Test func programs_runInTheService_andNoneOutlivesIt() async throws {
        let transcript = try await BootedSystem.run(
            #"""
            mkdir -p /etc/deferd
            printf '%s\n' 'programs:' \
              '  who: {command: [/bin/sh, -c, "echo $(id -un) $(umask) $(ls | wc -l) $DEFERD_ATTEMPT; cat"]}' \
              '  stay: {command: [/bin/sh, -c, "setsid sleep 1001 & sleep 1002 & exec sleep 1003"]}' \
              >/etc/deferd/deferd.yaml
            systemctl start deferd.service
            say who "$(client run --input '[1]' who)"
            say any "$(client run -- /bin/true 2>&1 >/dev/null)"
            sleepers() { pgrep -c -x sleep || true; }
            stay() {
              client run --detach --retries 1 --label stay stay >/dev/null
              until [ "$(sleepers)" = 3 ]; do sleep 0.05; done
            }

            # Killed, the daemon starts again and repeats the program, which may be retried.
            stay
            old=$(pgrep -x -f 'sleep 1003')
            systemctl kill --kill-whom=main --signal=KILL deferd.service
            until new=$(pgrep -x -f 'sleep 1003') && [ "$new" != "$old" ]; do sleep 0.05; done
            until [ "$(sleepers)" = 3 ]; do sleep 0.05; done
            say again "$(client list --state running --json | grep -c '"label" \?: \?"stay"')"

            # A stop ends them all.
            systemctl stop deferd.socket deferd.service
            say left "$(sleepers)"
            say result "$(show Result)"

            # systemd listens as root, but the daemon runs as another user.
            echo 'programs: {any: true}' >/etc/deferd/deferd.yaml
            systemctl start deferd.socket
            say environment "$(A=1 B=2 client run --env B=3 sh -c 'echo $A $B $(umask) $(id -un)')"
            """#)
        #expect(transcript.output.contains("who: deferd 0077 0 1\n[1]\n"))
        #expect(transcript.said("any").first?.contains("not allowed") == true)
        #expect(transcript.said("again") == ["1"])
        #expect(transcript.said("left") == ["0"])
        #expect(transcript.said("result") == ["success"])
        #expect(transcript.said("environment") == ["3 0077 deferd"])
    }
}
