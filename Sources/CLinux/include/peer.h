#ifndef DEFERD_PEER_H
#define DEFERD_PEER_H
#include <sys/types.h>

/// Who connected a Unix socket (SO_PEERCRED). Returns 0, or -1 with errno set.
int deferd_peer(int socket, uid_t *uid, gid_t *gid, pid_t *pid);

/// The peer's supplementary groups when it connected (SO_PEERGROUPS): at most `room` of them are put into `groups`.
/// Returns how many there are, or -1 with errno set; ERANGE says that there are more.
int deferd_peer_groups(int socket, gid_t *groups, int room);

/// Accepts a connection that does not block and is closed on exec: accept4(2), which Swift's Glibc module lacks.
int deferd_accept(int listener);

#endif
