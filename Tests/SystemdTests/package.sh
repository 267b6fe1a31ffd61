#!/bin/bash
# package.sh DEB DIRECTORY: tests a package in a new Debian 12.
#
# Creates a minimal Debian in DIRECTORY with debootstrap, if there is none, and boots a copy of it with the real systemd
# (boot.sh). In the copy, it installs the package, runs a download through the socket, upgrades, removes and purges. Afterwards,
# the copy must contain the same files as before. Needs root, and Debian's archive for the first run.
set -euo pipefail
deb=$(realpath -e -- "$1") root=$2
here=$(dirname "$(realpath -e -- "$0")")
[ "$(id -u)" = 0 ] || { echo "package.sh: not root" >&2; exit 125; }
if [ ! -e "$root/made" ]; then
    command -v debootstrap >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap >/dev/null
    rm -rf "$root"
    mkdir -p "$root"
    depends=$(dpkg-deb --field "$deb" Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/ //g')
    debootstrap --variant=minbase --include="systemd,systemd-sysv,dbus,man-db,$depends" bookworm "$root/system" >"$root/log" || {
        tail -n 5 "$root/log" >&2
        exit 1
    }
    : >"$root/made"
fi
share=$(mktemp -d /tmp/deferd-package-XXXXXX)
trap 'rm -rf "$share"' EXIT
cp "$deb" "$share/deferd.deb"
# The same package with a higher version, to upgrade to.
dpkg-deb --raw-extract "$deb" "$share/next"
sed -i 's/^Version: .*/&+next/' "$share/next/DEBIAN/control"
dpkg-deb -Znone --root-owner-group --build "$share/next" "$share/next.deb" >/dev/null
rm -r "$share/next"

cat >"$share/try.sh" <<'TRY'
set -eu
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive
fail() { echo "package.sh: $*" >&2; journalctl --no-pager -n 20 -u 'deferd*' >&2 || true; exit 1; }
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run/systemd -o -path /run/log -o -path /run/user -o -path /tmp \
        -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache -o -path /var/lib/systemd -o -path "$PWD" \) -prune -o -print
    find /run -maxdepth 2 -path '*deferd*' ! -path '/run/deferd-boot-up'
    # The user and the group stay, as postrm says.
    { getent passwd; getent group; } | grep -v '^deferd:'
}
# Files that any package with users and units changes: backups of the user database, and the index of journal messages.
known='/etc/(passwd|group|shadow|gshadow|subuid|subgid)-$|/etc/\.pwd\.lock$|/var/lib/systemd|/etc/systemd/system$'
files | grep -Ev "$known" | sort >before

echo "Installs:"
dpkg -i deferd.deb >log 2>&1 || fail "cannot be installed: $(cat log)"
systemctl is-active --quiet deferd.socket || fail "its socket does not listen"
systemctl is-enabled --quiet deferd.socket || fail "its socket is not enabled"
cmp -s /etc/deferd/deferd.yaml /usr/share/doc/deferd/deferd.yaml || zcat /usr/share/doc/deferd/deferd.yaml.gz | cmp -s - /etc/deferd/deferd.yaml ||
    fail "its configuration is not in place"
grep -q /etc/deferd/deferd.yaml /var/lib/dpkg/info/deferd.conffiles || fail "its configuration is no conffile"
deferd --instance system --check || fail "it does not accept its own configuration"
verdict=$(systemd-analyze verify deferd.service deferd.socket 2>&1) && [ -z "$verdict" ] || fail "the units are not right: $verdict"
systemd-analyze security --threshold=15 deferd.service >log || fail "its exposure is above 1.5: $(tail -n 1 log)"
man --warnings -w deferd >/dev/null && man -w deferctl deferd.yaml deferd-protocol >/dev/null || fail "a manual page is missing"

echo "Runs a download:"
perl -MIO::Socket::INET -e '
    my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1", LocalPort => 8080, ReuseAddr => 1) or die $!;
    while (my $c = $s->accept) { while (<$c>) { last if /^\r?$/ }
        print $c "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n"; close $c }' &
server=$!
deferctl download http://127.0.0.1:8080/hello --to hello.txt || fail "the download failed"
systemctl is-active --quiet deferd.service || fail "the daemon does not run"
[ "$(systemctl show -P User deferd.service)" = deferd ] || fail "it does not run as its own user"
systemctl reload deferd.service || fail "it cannot be reloaded"
[ "$(cat /var/lib/deferd/downloads/*/hello.txt)" = hello ] || fail "the file is not there"
job=$(deferctl submit '{"source":{"type":"value","value":"kept"}}')

echo "Upgrades:"
echo "# mine" >>/etc/deferd/deferd.yaml
dpkg -i next.deb >log 2>&1 || fail "cannot be upgraded: $(cat log)"
grep -q '# mine' /etc/deferd/deferd.yaml || fail "the upgrade lost the configuration"
[ "$(deferctl result "$job")" = kept ] || [ "$(deferctl result "$job")" = '"kept"' ] || fail "the upgrade lost a job"

echo "Is removed:"
dpkg --remove deferd >log 2>&1 || fail "cannot be removed: $(cat log)"
! systemctl is-active --quiet deferd.service deferd.socket || fail "it still runs"
[ -e /etc/deferd/deferd.yaml ] && [ -d /var/lib/deferd ] || fail "the removal lost the configuration or the jobs"

echo "Is purged:"
dpkg --purge deferd >log 2>&1 || fail "cannot be purged: $(cat log)"
kill "$server"
files | grep -Ev "$known" | sort >after
diff before after || fail "the purge left traces"
echo "The package installs, works, upgrades and goes without a trace."
TRY
"$here/boot.sh" --root "$root/system" --share "$share" -- sh "$share/try.sh"
