// The program guard, a process beside the daemon. It is C, as a process between fork and exec may do nothing that the Swift
// runtime does.
#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { requests = 0, reports = 1, most_groups = 4096 };

/// The group of one program. Its id stays taken while a process is in it, so a signal never meets a stranger.
struct group {
    uint64_t id;
    pid_t leader;
    bool has_exited;
};

static struct group groups[most_groups];
static size_t group_count;
static bool is_orphan;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void report(uint32_t kind, int32_t value, uint64_t id) {
    struct deferd_guard_report line = {.kind = kind, .value = value, .id = id};
    // Where no daemon reads any more, the end of the requests says so as well.
    while (!is_orphan && write(reports, &line, sizeof line) < 0 && errno == EINTR) {}
}

/// Reports the end of a group that is empty.
static bool forget_if_empty(size_t index) {
    if (!groups[index].has_exited || kill(-groups[index].leader, 0) == 0 || errno != ESRCH) return false;
    report(DEFERD_GUARD_ENDED, 0, groups[index].id);
    groups[index] = groups[--group_count];
    return true;
}

/// Reaps what has ended: programs, and what they left behind, which is this process's as it is a subreaper.
static void reap(void) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (size_t index = 0; index < group_count; index++) {
            if (groups[index].leader != pid || groups[index].has_exited) continue;
            groups[index].has_exited = true;
            if (WIFSIGNALED(status)) {
                report(DEFERD_GUARD_SIGNALLED, WTERMSIG(status), groups[index].id);
            } else {
                report(DEFERD_GUARD_EXITED, WEXITSTATUS(status), groups[index].id);
            }
            break;
        }
    }
    for (size_t index = 0; index < group_count;) {
        if (!forget_if_empty(index)) index++;
    }
}

/// Whether a program has exited and others of its group have not. One that another process is the parent of ends without
/// a word to this one.
static bool has_remains(void) {
    for (size_t index = 0; index < group_count; index++) {
        if (groups[index].has_exited) return true;
    }
    return false;
}

static void signal_group(pid_t leader, int number) {
    kill(-leader, number);
    // One that is stopped would not hear of it.
    if (number == SIGTERM) kill(-leader, SIGCONT);
}

/// Where the texts of a block begin, followed by NULL each: its arguments from the first index, its variables from the second.
struct texts {
    const char *directory;
    const char *path;
    char **arguments;
    char **variables;
};

/// Finds the texts of a block, which ends with a NUL, and puts pointers to them into `pointers`.
static bool read_block(char *block, size_t size, char **pointers, struct texts *texts) {
    const struct deferd_guard_block *head = (const struct deferd_guard_block *)block;
    char *text = block + sizeof *head, *end = block + size;
    size_t count = 2 + (size_t)head->arguments + head->variables, next = 0;
    texts->arguments = pointers;
    texts->variables = pointers + head->arguments + 1;
    for (size_t index = 0; index < count; index++) {
        if (text >= end) return false;
        if (index == 0) texts->directory = text;
        else if (index == 1) texts->path = text;
        else {
            if (index == 2 + (size_t)head->arguments) pointers[next++] = NULL;
            pointers[next++] = text;
        }
        text += strlen(text) + 1;
    }
    texts->variables[head->variables] = NULL;
    texts->arguments[head->arguments] = NULL;
    return true;
}

/// What a child that shares this process's memory until it is the program tells of its failure.
static volatile struct {
    int error;
    uint32_t kind;
} failure;

static void become(const struct texts *texts, const int *descriptors, pid_t guard) {
    failure.kind = DEFERD_GUARD_REFUSED;
    setsid();
    // Should the guard be killed, the programs are ended at least; the daemon ends the rest of their groups.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard) _exit(127);
    for (int target = 0; target < 3; target++) {
        if (dup2(descriptors[1 + target], target) < 0) goto failed;
    }
    if (chdir(texts->directory) != 0) {
        failure.kind = DEFERD_GUARD_NO_DIRECTORY;
        goto failed;
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(texts->path, texts->arguments, texts->variables);
failed:
    failure.error = errno;
    _exit(127);
}

static void start(const struct deferd_guard_request *request, const int *descriptors) {
    if (group_count == most_groups) return report(DEFERD_GUARD_REFUSED, EAGAIN, request->id);
    struct stat file;
    size_t size = request->size;
    if (size <= sizeof(struct deferd_guard_block) || fstat(descriptors[0], &file) != 0
        || (uint64_t)file.st_size < size) {
        return report(DEFERD_GUARD_REFUSED, EINVAL, request->id);
    }
    // A mapping of its own: no other process sees what this one writes into it.
    char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptors[0], 0);
    if (block == MAP_FAILED) return report(DEFERD_GUARD_REFUSED, errno, request->id);
    block[size - 1] = 0;
    const struct deferd_guard_block *head = (const struct deferd_guard_block *)block;
    size_t room = ((size_t)head->arguments + head->variables + 2) * sizeof(char *);
    char **pointers = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pointers == MAP_FAILED) {
        report(DEFERD_GUARD_REFUSED, errno, request->id);
        munmap(block, size);
        return;
    }
    struct texts texts;
    if (read_block(block, size, pointers, &texts)) {
        failure.error = 0;
        pid_t guard = getpid(), child = vfork();
        if (child == 0) become(&texts, descriptors, guard);
        if (child < 0) {
            report(DEFERD_GUARD_REFUSED, errno, request->id);
        } else if (failure.error != 0) {
            while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
            report(failure.kind, failure.error, request->id);
        } else {
            groups[group_count++] = (struct group){.id = request->id, .leader = child};
            report(DEFERD_GUARD_STARTED, child, request->id);
        }
    } else {
        report(DEFERD_GUARD_REFUSED, EINVAL, request->id);
    }
    munmap(pointers, room);
    munmap(block, size);
}

/// Carries one request out; false where there is none now.
static bool serve(void) {
    struct deferd_guard_request request;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(DEFERD_GUARD_DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec vector = {.iov_base = &request, .iov_len = sizeof request};
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t count = recvmsg(requests, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (count < 0) {
        if (errno != EINTR && errno != EAGAIN) is_orphan = true;
        return errno == EINTR;
    }
    if (count == 0) {
        is_orphan = true;
        return false;
    }
    int descriptors[DEFERD_GUARD_DESCRIPTORS];
    size_t received = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        received = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(descriptors, CMSG_DATA(part), received * sizeof(int));
    }
    if (count == sizeof request && request.kind == DEFERD_GUARD_START) {
        if (received == DEFERD_GUARD_DESCRIPTORS) start(&request, descriptors);
        // It had no room for more descriptors.
        else report(DEFERD_GUARD_REFUSED, EMFILE, request.id);
    } else if (count == sizeof request && request.kind == DEFERD_GUARD_SIGNAL) {
        for (size_t index = 0; index < group_count; index++) {
            if (groups[index].id == request.id) signal_group(groups[index].leader, request.signal);
        }
    }
    for (size_t index = 0; index < received; index++) close(descriptors[index]);
    return true;
}

/// Ends every program, as the daemon has died.
static void end_all(int children, int64_t grace) {
    int64_t deadline = now() + grace;
    for (size_t index = 0; index < group_count; index++) signal_group(groups[index].leader, SIGTERM);
    while (reap(), group_count > 0) {
        int64_t left = deadline - now();
        if (left <= 0) {
            for (size_t index = 0; index < group_count; index++) kill(-groups[index].leader, SIGKILL);
            // What the kernel does not end by now it ends when it can.
            if (left < -30000) return;
        }
        struct pollfd child = {.fd = children, .events = POLLIN};
        poll(&child, 1, left > 0 && left < 100 ? (int)left : 100);
        struct signalfd_siginfo info;
        while (read(children, &info, sizeof info) > 0) {}
    }
}

int main(int count, char **arguments) {
    int kind;
    socklen_t length = sizeof kind;
    if (count != 2 || getsockopt(requests, SOL_SOCKET, SO_TYPE, &kind, &length) != 0 || kind != SOCK_SEQPACKET) {
        fputs("deferd starts this program by itself.\n", stderr);
        return 64;
    }
    // A session of its own, so that what a terminal sends the daemon does not end the guard as well.
    setsid();
    if (chdir("/") != 0) return 71;
    close_range(3, ~0U, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    umask(077);
    // What programs take counts against the memory of the daemon's service: where there is none left, one of them is ended
    // and not the daemon. They inherit it.
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (score >= 0) {
        // Where it may not be raised the kernel chooses as it always does.
        if (write(score, "500", 3) < 0) {}
        close(score);
    }
    // The daemon has raised it for its connections; a program that uses select(2) relies on the usual one.
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 1024) {
        files.rlim_cur = 1024;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    // Blocked, none ends the guard before the programs, and none is ignored, which the programs would inherit.
    sigset_t all, child;
    // By the kernel's own call, as the C library keeps two numbers to itself, which may have been ignored all the same.
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } standard = {0};
    for (int number = 1; number < NSIG; number++) syscall(SYS_rt_sigaction, number, &standard, NULL, sizeof(uint64_t));
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (children < 0) return 71;
    int pause = 10;
    while (!is_orphan) {
        struct pollfd both[2] = {{.fd = requests, .events = POLLIN}, {.fd = children, .events = POLLIN}};
        bool waits = has_remains();
        if (!waits) pause = 10;
        if (poll(both, 2, waits ? pause : -1) == 0) pause = pause < 500 ? pause * 2 : 1000;
        struct signalfd_siginfo info;
        if (both[1].revents) while (read(children, &info, sizeof info) > 0) {}
        if (both[1].revents || waits) reap();
        if (both[0].revents) while (serve()) {}
    }
    end_all(children, strtoll(arguments[1], NULL, 10));
    return 0;
}
