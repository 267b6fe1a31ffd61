#define _GNU_SOURCE
#include "clock.h"
#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static int arm(int watch) {
    // A time that is never reached: the timer exists to be cancelled.
    struct itimerspec never = {.it_value = {.tv_sec = INT32_MAX * 64LL}};
    return timerfd_settime(watch, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, 0);
}

int deferd_watch_clock(void) {
    int watch = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (watch >= 0 && arm(watch) < 0) {
        int reason = errno;
        close(watch);
        errno = reason;
        return -1;
    }
    return watch;
}

int deferd_watch_clock_again(int watch) {
    uint64_t count;
    // ECANCELED is the expected result.
    while (read(watch, &count, sizeof count) < 0 && errno == EINTR) {
    }
    return arm(watch);
}

bool deferd_read_time(const char *text, const char *form, int64_t *seconds) {
    struct tm parts = {0};
    const char *end = strptime(text, form, &parts);
    // To strptime(3), a year of two digits is one of 1969 to 2068; to RFC 6265, section 5.1.1, one of 1970 to 2069.
    if (parts.tm_year == 69 && strstr(form, "%y")) parts.tm_year += 100;
    *seconds = timegm(&parts);
    return end && *end == 0;
}
