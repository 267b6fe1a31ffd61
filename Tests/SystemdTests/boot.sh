#!/bin/bash
# boot.sh [--root DIR] [--units DIR].. [--program FILE].. [--share DIR].. [--console FILE] [--timeout SECONDS] -- COMMAND..
#
# Boots this machine's own systemd as PID 1 of new namespaces over a temporary overlay of /, runs COMMAND there, and takes
# everything down again. The exit status is COMMAND's, or 125 if booting failed. Needs root, cgroup2 and overlayfs; the
# network inside is a separate loopback.
#   --root DIR      another Debian's files instead of this machine's; they are not changed either
#   --units DIR     the contents are copied to /etc/systemd/system
#   --program FILE  appears, read-only, in /usr/local/bin
#   --share DIR     appears, writable, at the same path; no other writes inside reach the machine
#   --console FILE  receives the manager's output during the boot
set -u
units=() programs=() shares=() lower=/ console=/dev/null timeout=60
fail() { echo "boot.sh: $*" >&2; exit 125; }
while [ $# -gt 0 ]; do
  case $1 in
    --root) lower=$2; shift 2;;
    --units) units+=("$2"); shift 2;;
    --program) programs+=("$2"); shift 2;;
    --share) shares+=("$2"); shift 2;;
    --console) console=$2; shift 2;;
    --timeout) timeout=$2; shift 2;;
    --) shift; break;;
    *) fail "unknown option $1";;
  esac
done
[ $# -gt 0 ] || fail "no command given"
# A booting system cleans the directories it takes for its own. It must never get the real ones.
for ((i = 0; i < ${#shares[@]}; i++)); do
  shares[i]=$(realpath -e -- "${shares[i]}") || fail "${shares[i]} does not exist"
  case ${shares[i]} in
    / | /tmp | /home | /root | /srv | /mnt | /media | /opt | /var | /var/* | /run | /run/* | /dev | /dev/* | \
    /proc | /proc/* | /sys | /sys/* | /etc | /etc/* | /usr | /usr/* | /bin | /bin/* | /sbin | /sbin/* | /lib* | \
    /boot | /boot/*)
      fail "will not share ${shares[i]}: make a folder of your own";;
  esac
done
lower=$(realpath -e -- "$lower") || fail "there is no such root"
[ "$(id -u)" = 0 ] || fail "not root"
cgroups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
[ -n "$cgroups" ] || fail "no cgroup2 is mounted"
init=/lib/systemd/systemd; [ -x $init ] || init=/usr/lib/systemd/systemd
[ -x $init ] || fail "no systemd is installed"

for left in "$cgroups"/deferd-boot.*-*; do # by one that was killed
  owner=${left##*/deferd-boot.}
  [ ! -d "$left" ] || [ -d "/proc/${owner%%-*}" ] || {
    find "$left" -depth -type d -exec rmdir {} \;
    rm -f "/tmp/${left##*/}/up"; rmdir "/tmp/${left##*/}"{/tree,}
  } 2>/dev/null
done
work=$(mktemp -d /tmp/deferd-boot.$$-XXXXXX) || fail "cannot make a folder in /tmp"
cgroup=$cgroups/${work##*/}
mkdir "$work/tree" && mkfifo "$work/up" && mkdir "$cgroup" "$cgroup/outside" || fail "cannot prepare $work and $cgroup"
launcher= command= booted=
take_down() {
  trap - EXIT INT TERM
  exec 2>/dev/null
  # PID 1 takes its whole namespace with it; nsenter must live to see its child end.
  [ -z "$booted" ] || kill -KILL "$booted"
  [ -z "$command" ] || wait "$command"
  [ -z "$launcher" ] || { kill -KILL "$launcher"; wait "$launcher"; }
  for _ in {1..50}; do
    find "$cgroup" -depth -type d -exec rmdir {} \;
    [ -d "$cgroup" ] || break
    sleep 0.1
  done
  rm -f "$work/up"; rmdir "$work/tree" "$work"
}
trap take_down EXIT; trap 'exit 130' INT; trap 'exit 143' TERM

become_init() { # in new mount, pid, uts, ipc, cgroup and net namespaces
  set -e
  mount --make-rprivate /
  mount -t tmpfs -o mode=755 tmpfs "$work/tree"
  cd "$work/tree"; mkdir upper work root
  mount -t overlay -o "lowerdir=$lower,upperdir=upper,workdir=work" overlay root
  cd root; mkdir -p proc sys dev run tmp old
  mount -t proc -o nosuid,nodev,noexec proc proc
  mount --bind proc/sys proc/sys; mount -o remount,bind,ro proc/sys
  [ ! -e proc/sysrq-trigger ] || mount --bind /dev/null proc/sysrq-trigger
  mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys # read-only: a container's, so udev keeps out
  mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 sys/fs/cgroup
  mount -t tmpfs -o nosuid,mode=755 tmpfs dev; mkdir dev/pts dev/shm
  for node in null zero full random urandom tty; do : >dev/$node; mount --bind /dev/$node dev/$node; done
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
  mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs dev/shm
  ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd
  ln -s fd/0 dev/stdin; ln -s fd/1 dev/stdout; ln -s fd/2 dev/stderr
  mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs run; mkdir -p run/host run/systemd/system
  echo deferd-boot >run/host/container-manager
  mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs tmp
  : >run/deferd-boot-up; mount --bind "$work/up" run/deferd-boot-up
  for share in "${shares[@]}"; do mkdir -p ".$share"; mount --rbind "$share" ".$share"; done
  mkdir -p usr/local/bin
  for program in "${programs[@]}"; do
    target=usr/local/bin/${program##*/}
    rm -f "$target"; : >"$target"; mount --bind "$program" "$target"; mount -o remount,bind,ro "$target"
  done
  rm -rf etc/systemd/system etc/fstab var/log/journal
  mkdir -p etc/systemd/system etc/tmpfiles.d var/log/journal; : >etc/fstab
  tr -d - </proc/sys/kernel/random/uuid >etc/machine-id
  hostname deferd-boot; echo deferd-boot >etc/hostname
  # Hardware, logins and the network are not there; and nothing is cleaned, since a shared folder may lie below /tmp.
  for unit in systemd-{udevd,timesyncd,resolved,networkd,logind,firstboot,hwdb-update,pstore}.service \
      systemd-{journal-catalog-update,update-utmp,binfmt,tmpfiles-clean}.service systemd-tmpfiles-clean.timer \
      systemd-udevd-{control,kernel}.socket dev-{hugepages,mqueue}.mount proc-sys-fs-binfmt_misc.automount \
      getty.target; do
    ln -s /dev/null "etc/systemd/system/$unit"
  done
  for rules in tmp legacy x11 systemd-nspawn; do ln -sf /dev/null "etc/tmpfiles.d/$rules.conf"; done
  cat >etc/systemd/system/deferd-boot.target <<-'UNIT'
	[Unit]
	Requires=basic.target dbus.socket deferd-boot.service
	After=basic.target dbus.socket
	AllowIsolate=yes
	UNIT
  cat >etc/systemd/system/deferd-boot.service <<-'UNIT'
	[Unit]
	After=basic.target dbus.socket
	[Service]
	Type=oneshot
	ExecStart=/bin/sh -c 'echo up >/run/deferd-boot-up'
	UNIT
  for folder in "${units[@]}"; do cp -r "$folder"/. etc/systemd/system/; done
  pivot_root . old; umount -l /old; rmdir /old
  mount --make-rshared / # units' own mounts must propagate, as in any container
  exec env -i container=deferd-boot PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    $init --system --unit=deferd-boot.target --log-target=journal-or-kmsg --show-status=no </dev/null
}

# The function travels as text: unshare starts a new shell, and that one becomes PID 1.
inside="$(declare -p work init lower units programs shares); $(declare -f become_init); become_init"
exec 9<>"$work/up"
(
  echo "$BASHPID" >"$cgroup/cgroup.procs"
  # When a process here dies, its descendants die too, down to PID 1 and with it everything inside.
  exec setpriv --pdeathsig KILL bash -c '
    setpriv --pdeathsig KILL unshare --mount --pid --uts --ipc --cgroup --net --fork --kill-child bash -c "$1"
    echo ended >"$2"' - "$inside" "$work/up" 9>&-
) >"$console" 2>&1 &
launcher=$!
read -r -t "$timeout" word <&9 || word="not up within $timeout s"
child() { local pids; pids=$(cat "/proc/$1/task/$1/children" 2>/dev/null); echo "${pids%% *}"; }
unshared=$(child "$launcher")
[ "$word" != up ] || booted=$(child "$unshared")
[ "$word" = up ] && [ -n "$booted" ] || {
  [ "$console" = /dev/null ] || tail -n 20 "$console" >&2
  fail "the system is $word"
}
exec 9>&-
# A cgroup with processes of its own cannot have children with controllers: leave the namespace's root to PID 1.
for pid in "$launcher" "$unshared"; do echo "$pid" >"$cgroup/outside/cgroup.procs"; done
(
  echo "$BASHPID" >"$cgroup/outside/cgroup.procs"
  # A session of its own: a signal to the process group of COMMAND must not reach this script.
  exec setsid -w nsenter -t "$booted" -m -p -u -i -C -n -r -w -- \
    env SYSTEMD_PAGER=cat SYSTEMD_COLORS=0 SYSTEMD_LOG_LEVEL=warning "$@"
) <&0 &
command=$!
wait "$command"
status=$?
command=
exit $status
