// The program guard, a process beside the daemon. It is written in C, because between fork and exec, a process cannot use
// the Swift runtime.
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

/// The process group of one program. Its id stays in use while the group has a process, so signals never reach other groups.
struct group {
    uint64_t id;
    pid_t leader;
    bool has_exited;
    struct failure *failure;
};

/// How a child says why it cannot run its program, in memory that it shares with this process. This process does not wait
/// for that: the file systems of the directory and of the program may never answer.
struct failure {
    int error;
    uint32_t kind;
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
    // If no daemon reads the pipe any more, the end of the requests indicates that too.
    while (!is_orphan && write(reports, &line, sizeof line) < 0 && errno == EINTR) {}
}

/// Reaps ended processes: programs, and processes that they left, which belong to this process because it is a subreaper.
/// Forgets groups that are empty now.
static void reap(void) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (size_t index = 0; index < group_count; index++) {
            if (groups[index].leader != pid || groups[index].has_exited) continue;
            groups[index].has_exited = true;
            if (groups[index].failure->error != 0) {
                report(groups[index].failure->kind, groups[index].failure->error, groups[index].id);
            } else if (WIFSIGNALED(status)) {
                report(DEFERD_GUARD_SIGNALLED, WTERMSIG(status), groups[index].id);
            } else {
                report(DEFERD_GUARD_EXITED, WEXITSTATUS(status), groups[index].id);
            }
            break;
        }
    }
    for (size_t index = group_count; index-- > 0;) {
        if (!groups[index].has_exited || kill(-groups[index].leader, 0) == 0 || errno != ESRCH) continue;
        report(DEFERD_GUARD_ENDED, 0, groups[index].id);
        struct group ended = groups[index];
        groups[index] = groups[--group_count];
        // Its memory for a failure is free again.
        groups[group_count] = ended;
    }
}

/// Whether a program has exited while other processes of its group remain. If such a process has another parent, this
/// process is not notified of its end.
static bool has_remains(void) {
    for (size_t index = 0; index < group_count; index++) {
        if (groups[index].has_exited) return true;
    }
    return false;
}

static void signal_group(const struct group *group, int number) {
    // A child that has just begun to run leads no group yet.
    if (kill(-group->leader, number) != 0 && !group->has_exited) kill(group->leader, number);
    // A stopped process would not receive the signal.
    if (number == SIGTERM) kill(-group->leader, SIGCONT);
}

/// Finds the texts of a block. In `texts`, where all pointers are NULL before, one stays NULL behind the arguments, and one
/// behind the variables.
static void read_block(const struct deferd_guard_block *block, char **texts) {
    char *text = (char *)(block + 1);
    for (size_t index = 0; index < 1 + (size_t)block->arguments + block->variables; index++) {
        texts[index <= block->arguments ? index : index + 1] = text;
        text += strlen(text) + 1;
    }
}

static void become(
    const struct deferd_guard_block *block, char **texts, const int *descriptors, pid_t guard, struct failure *failure) {
    uint32_t kind = DEFERD_GUARD_REFUSED;
    setsid();
    // If the guard is killed, its programs are ended too; the daemon ends the rest of their groups.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard) _exit(127);
    for (int target = 0; target < 3; target++) {
        if (dup2(descriptors[1 + target], target) < 0) goto failed;
    }
    umask(block->umask);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(texts[0]) != 0) {
        kind = DEFERD_GUARD_NO_DIRECTORY;
        goto failed;
    }
    execve(texts[1], texts + 1, texts + 2 + block->arguments);
failed:
    *failure = (struct failure){.error = errno, .kind = kind};
    _exit(127);
}

/// Starts a program, and reports that; returns an error if there is no process for it.
static int start(const struct deferd_guard_request *request, const int *descriptors) {
    if (group_count == most_groups) return EAGAIN;
    struct deferd_guard_block *block = mmap(NULL, request->size, PROT_READ, MAP_PRIVATE, descriptors[0], 0);
    if (block == MAP_FAILED) return ENOMEM;
    char **texts = calloc((size_t)block->arguments + block->variables + 3, sizeof(char *));
    struct failure *failure = groups[group_count].failure;
    pid_t guard = getpid(), child = -1;
    int error = ENOMEM;
    if (texts) {
        read_block(block, texts);
        failure->error = 0;
        // Not vfork, with which this process would wait for the child.
        child = fork();
        if (child == 0) become(block, texts, descriptors, guard, failure);
        error = child < 0 ? errno : 0;
    }
    free(texts);
    munmap(block, request->size);
    if (error != 0) return error;
    groups[group_count++] = (struct group){.id = request->id, .leader = child, .failure = failure};
    report(DEFERD_GUARD_STARTED, child, request->id);
    return 0;
}

/// Executes one request; false if there is none now.
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
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    if (part) {
        received = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(descriptors, CMSG_DATA(part), received * sizeof(int));
    }
    if (request.kind == DEFERD_GUARD_START) {
        // This process may have no room for the descriptors.
        int error = received == DEFERD_GUARD_DESCRIPTORS ? start(&request, descriptors) : EMFILE;
        if (error != 0) {
            report(DEFERD_GUARD_REFUSED, error, request.id);
            report(DEFERD_GUARD_ENDED, 0, request.id);
        }
    } else {
        for (size_t index = 0; index < group_count; index++) {
            if (groups[index].id == request.id) signal_group(&groups[index], request.signal);
        }
    }
    for (size_t index = 0; index < received; index++) close(descriptors[index]);
    return true;
}

/// Ends every program after the death of the daemon.
static void end_all(int children, int64_t grace) {
    int64_t deadline = now() + grace;
    for (size_t index = 0; index < group_count; index++) signal_group(&groups[index], SIGTERM);
    while (reap(), group_count > 0) {
        int64_t left = deadline - now();
        if (left <= 0) {
            for (size_t index = 0; index < group_count; index++) signal_group(&groups[index], SIGKILL);
            // Processes that are still in the kernel end as soon as they can.
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
    struct failure *failures =
        mmap(NULL, most_groups * sizeof *failures, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (failures == MAP_FAILED) return 71;
    for (size_t index = 0; index < most_groups; index++) groups[index].failure = &failures[index];
    // A session of its own, so that signals from the daemon's terminal do not end the guard.
    setsid();
    if (chdir("/") != 0) return 71;
    close_range(3, ~0U, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    // The memory of programs counts towards the daemon's service. When it runs out, the kernel should end a program, not the
    // daemon. Programs inherit the value.
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (score >= 0) {
        // If raising it is not permitted, the kernel uses its default choice.
        if (write(score, "500", 3) < 0) {}
        close(score);
    }
    // The daemon has raised the limit for its connections; a program that uses select(2) relies on the usual limit.
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 1024) {
        files.rlim_cur = 1024;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    // Blocked signals neither end the guard before the programs nor are ignored, which the programs would inherit.
    sigset_t all, child;
    // With the kernel's own call, because the C library reserves two signals, which may have been ignored too.
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
