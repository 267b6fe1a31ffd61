#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int deferd_guard_send(
    int socket, const struct deferd_guard_request *request, const int *descriptors, int flags) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(DEFERD_GUARD_DESCRIPTORS * sizeof(int))];
    } control = {0};
    struct iovec vector = {.iov_base = (void *)request, .iov_len = sizeof *request};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    if (descriptors) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(DEFERD_GUARD_DESCRIPTORS * sizeof(int));
        memcpy(CMSG_DATA(part), descriptors, DEFERD_GUARD_DESCRIPTORS * sizeof(int));
    }
    ssize_t sent;
    while ((sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL)) < 0 && errno == EINTR) {}
    return sent < 0 ? -1 : 0;
}

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

int deferd_memory_file(const char *name) {
    int file = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    // Before Linux 6.3.
    return file < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC) : file;
}

int deferd_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

int deferd_try_lock(int file) { return flock(file, LOCK_EX | LOCK_NB); }
