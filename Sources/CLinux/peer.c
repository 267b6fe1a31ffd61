#define _GNU_SOURCE
#include "peer.h"

#include <stddef.h>
#include <sys/socket.h>

int deferd_peer(int socket, uid_t *uid, gid_t *gid) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return -1;
    *uid = peer.uid;
    *gid = peer.gid;
    return 0;
}

int deferd_peer_groups(int socket, gid_t *groups, int room) {
    socklen_t length = (socklen_t)room * sizeof(gid_t);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &length) != 0) return -1;
    return (int)(length / sizeof(gid_t));
}

int deferd_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}
