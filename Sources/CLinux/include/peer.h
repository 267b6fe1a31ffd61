#pragma once
#include <sys/types.h>

/// The user and group that connected to a Unix socket (SO_PEERCRED). Returns 0, or -1 with errno set.
int deferd_peer(int socket, uid_t *uid, gid_t *gid);

/// The peer's supplementary groups when it connected (SO_PEERGROUPS): at most `room` of them are stored in `groups`.
/// Returns their number, or -1 with errno set; ERANGE means that there are more.
int deferd_peer_groups(int socket, gid_t *groups, int room);

/// Accepts a connection as nonblocking and close-on-exec: accept4(2), which Swift's Glibc module lacks.
int deferd_accept(int listener);
