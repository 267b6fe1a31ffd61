import Foundation
import Glibc
import TestSupport
import Testing

/// A library for LD_PRELOAD that is compiled for a test: the daemon is the real one, and only results of the system
/// that cannot be changed otherwise for one process are changed.
struct Interposer {
    /// Why there is none here, or nil.
    static let obstacle = Files.exists("/usr/bin/cc") ? nil : "there is no C compiler"

    let path: String

    init(_ source: String, in directory: TemporaryDirectory) async throws {
        path = directory.path + "/interposer.so"
        let file = try directory.write("#define _GNU_SOURCE\n" + source, to: "interposer.c")
        let (end, _, errors) = try await ChildProcess.run(["/usr/bin/cc", "-shared", "-fPIC", "-o", path, file, "-ldl"])
        try #require(end == .code(0), "\(errors)")
        try #require(chmod(path, 0o755) == 0)
    }
}

extension Interposer {
    /// The wall clock is ahead by as many seconds as $CLOCK_AHEAD holds, eight bytes; each eight bytes that are written
    /// to the pipe $CLOCK_SET say that it was set.
    static let wallClock = """
        #include <dlfcn.h>
        #include <errno.h>
        #include <fcntl.h>
        #include <semaphore.h>
        #include <stdint.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <sys/timerfd.h>
        #include <time.h>
        #include <unistd.h>
        static volatile int64_t *ahead;
        static int watch = -1;
        static int isReal[65536];
        __attribute__((constructor)) static void begin(void) {
            int file = open(getenv("CLOCK_AHEAD"), O_RDONLY | O_CLOEXEC);
            void *map = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
            if (map != MAP_FAILED) ahead = map;
            close(file);
        }
        static int64_t more(clockid_t clock) {
            return ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) ? *ahead : 0;
        }
        int clock_gettime(clockid_t clock, struct timespec *now) {
            int result = syscall(SYS_clock_gettime, clock, now);
            if (result == 0) now->tv_sec += more(clock);
            return result;
        }
        int gettimeofday(struct timeval *restrict now, void *restrict zone) {
            int result = syscall(SYS_gettimeofday, now, zone);
            if (result == 0 && now) now->tv_sec += more(CLOCK_REALTIME);
            return result;
        }
        time_t time(time_t *result) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            if (result) *result = now.tv_sec;
            return now.tv_sec;
        }
        int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict end) {
            struct timespec moved = *end;
            moved.tv_sec -= more(CLOCK_REALTIME);
            return ((int (*)(sem_t *, const struct timespec *))dlsym(RTLD_NEXT, "sem_timedwait"))(semaphore, &moved);
        }
        int timerfd_create(int clock, int flags) {
            int timer = syscall(SYS_timerfd_create, clock, flags);
            if (timer >= 0 && timer < 65536) isReal[timer] = clock == CLOCK_REALTIME;
            return timer;
        }
        int timerfd_settime(int timer, int flags, const struct itimerspec *next, struct itimerspec *old) {
            if (flags & TFD_TIMER_CANCEL_ON_SET) {
                if (timer == watch) return 0;
                int set = open(getenv("CLOCK_SET"), O_RDWR | O_NONBLOCK | O_CLOEXEC);
                if (set < 0 || dup3(set, timer, O_CLOEXEC) < 0) return -1;
                close(set);
                watch = timer;
                return 0;
            }
            struct itimerspec moved = *next;
            if ((flags & TFD_TIMER_ABSTIME) && timer < 65536 && isReal[timer] && moved.it_value.tv_sec > *ahead)
                moved.it_value.tv_sec -= *ahead;
            return syscall(SYS_timerfd_settime, timer, flags, &moved, old);
        }
        """
}
