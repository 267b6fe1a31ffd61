#!/bin/sh
# Three daemons share JOBS=10000 jobs in a PostgreSQL server of their own, and one is killed in the middle: demo.sh PROGRAMS.
# Fails if a job is lost, or if its end is stored twice.
set -eu
programs=$1
jobs=${JOBS:-10000}
lease=5
server=/usr/lib/postgresql/$(ls /usr/lib/postgresql | sort -n | tail -n 1)/bin
directory=$(mktemp -d /tmp/deferd-machines.XXXXXX)
database=$directory/postgresql
nodes='ada bob cem'

# PostgreSQL refuses to run as root.
as_server() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
    else
        "$@"
    fi
}

clean_up() {
    for node in $nodes; do
        [ ! -s "$directory/$node.pid" ] || kill -9 "$(cat "$directory/$node.pid")" 2>/dev/null || true
    done
    (cd / && as_server "$server/pg_ctl" -D "$database/data" -m immediate stop >/dev/null 2>&1) || true
    rm -rf "$directory"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

say() { printf '\n\033[1m▸ %s\033[0m\n' "$1"; }

fail() {
    printf '%s\n' "$*" >&2
    for node in $nodes; do
        [ ! -s "$directory/$node.log" ] || { echo "The log of $node:"; grep -v ' info ' "$directory/$node.log" | tail -n 20; } >&2
    done
    exit 1
}

sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 -h "$database" -U deferd -d deferd "$@"; }

client() {
    node=$1
    shift
    "$programs/deferctl" --socket "$directory/$node.sock" "$@"
}

start() {
    cat >"$directory/$1.yaml" <<END
state: {store: "postgresql:///deferd?host=$database&user=deferd"}
node: {name: $1, lease: $lease}
END
    "$programs/deferd" --instance user --config "$directory/$1.yaml" --socket "$directory/$1.sock" \
        --state-directory "$directory/$1" --downloads-directory "$directory/$1.downloads" 2>"$directory/$1.log" &
    echo $! >"$directory/$1.pid"
    until client "$1" info >/dev/null 2>&1; do
        kill -0 "$(cat "$directory/$1.pid")" 2>/dev/null || fail "The daemon $1 did not start: $(cat "$directory/$1.log")"
        sleep 0.1
    done
}

now() { date +%s%N; }
since() { echo "$1 $(now)" | awk '{printf "%.1f", ($2 - $1) / 1e9}'; }

say "A PostgreSQL server for the demo, and three daemons that use it"
chmod 711 "$directory"
mkdir "$database"
[ "$(id -u)" -ne 0 ] || chown postgres "$database"
cd /
as_server "$server/initdb" -D "$database/data" -A trust -U deferd -E UTF8 --locale=C >"$directory/initdb.log" 2>&1 ||
    fail "$(cat "$directory/initdb.log")"
as_server "$server/pg_ctl" -D "$database/data" -l "$database/log" -w \
    -o "-k $database -c listen_addresses=" start >"$directory/start.log" 2>&1 || fail "$(cat "$directory/start.log")"
createdb -h "$database" -U deferd deferd
for node in $nodes; do start "$node"; done
# The server itself records which daemon begins a run, and which one stores a job's end.
sql <<'END'
CREATE TABLE public.events (job bigint, life bigint, state bigint);
CREATE FUNCTION public.record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.run_life IS NOT NULL AND new.run_life IS DISTINCT FROM old.run_life THEN
        INSERT INTO public.events VALUES (new.id, new.run_life, 2);
    END IF;
    IF new.state >= 4 AND coalesce(old.state, 0) < 4 THEN
        INSERT INTO public.events VALUES (new.id, coalesce(old.run_life, new.run_life), new.state);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER record AFTER INSERT OR UPDATE ON deferd.jobs FOR EACH ROW EXECUTE FUNCTION public.record();
CREATE TABLE public.accepted (job bigint PRIMARY KEY);
END
client ada nodes

say "$jobs jobs, all submitted to ada"
begin=$(now)
yes '{"source":{"type":"program","command":["/bin/true"]},"retry":{"max":1},"tags":["demo"]}' | head -n "$jobs" |
    client ada submit >"$directory/accepted"
echo "accepted within $(since "$begin") s"
sql -c '\copy public.accepted FROM '"'$directory/accepted'"
client cem wait --tag demo >"$directory/wait" &
waiting=$!

until [ "$(sql -c 'SELECT count(*) FROM events WHERE state >= 4')" -ge $((jobs * 2 / 5)) ]; do
    sleep 0.2
    kill -0 "$(cat "$directory/bob.pid")" 2>/dev/null || fail "The daemon bob has ended: $(tail -n 5 "$directory/bob.log")"
done
say "kill -9 bob, in the middle"
life=$(sql -c "SELECT life FROM deferd.deferd_lives WHERE node = 'bob'")
kill -9 "$(cat "$directory/bob.pid")"
killed=$(now)
sql -c "SELECT count(*) || ' jobs were at work there' FROM deferd.jobs WHERE run_life = $life"
until [ "$(sql -c "SELECT is_taken FROM deferd.deferd_lives WHERE life = $life")" = t ]; do
    sleep 0.1
    [ "$(($(now) - killed))" -lt 60000000000 ] || fail "The jobs of bob were not taken over within a minute."
done
takeover=$(since "$killed")
echo "the others took them over $takeover s later (node.lease: $lease s)"

wait "$waiting" || fail "deferctl wait, at cem, ended with $?: $(cat "$directory/wait")"
say "deferctl wait, at cem"
cat "$directory/wait"
say "The jobs by daemon and state, $(since "$begin") s after the first one"
psql -X -q -h "$database" -U deferd -d deferd -P footer=off <<'END'
SELECT node, count(*) FILTER (WHERE events.state = 2) AS runs, count(*) FILTER (WHERE events.state = 4) AS succeeded,
    count(*) FILTER (WHERE events.state = 5) AS failed, count(*) FILTER (WHERE events.state = 6) AS cancelled
FROM deferd.deferd_lives LEFT JOIN events USING (life) GROUP BY node ORDER BY node
END
say "deferctl nodes"
client cem nodes

accepted=$(sort -u "$directory/accepted" | wc -l)
lost=$(sql -c "SELECT count(*) FROM accepted WHERE NOT EXISTS (
    SELECT 1 FROM events JOIN deferd.jobs ON id = job WHERE job = accepted.job AND events.state = 4 AND jobs.state = 4)")
twice=$(sql -c "SELECT count(*) FROM (SELECT job FROM events WHERE state >= 4 GROUP BY job HAVING count(*) > 1) AS twice")
again=$(sql -c "SELECT count(*) FROM (SELECT job FROM events WHERE state = 2 GROUP BY job HAVING count(*) > 1) AS again")
printf '\naccepted: %s, lost: %s, ended twice: %s, repeated by another daemon: %s\n' "$accepted" "$lost" "$twice" "$again"
[ "$accepted" -eq "$jobs" ] || fail "Only $accepted of $jobs jobs were accepted."
[ "$lost" -eq 0 ] || fail "Jobs were lost."
[ "$twice" -eq 0 ] || fail "Jobs ran twice to their end."
echo "Done: the daemons and the server are stopped, and nothing is left in $directory."
