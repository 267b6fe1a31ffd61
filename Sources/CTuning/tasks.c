#include "tasks.h"

#include <stddef.h>

// The runtime's hook for a pool of one's own; weak, so that without it tasks run on libdispatch's as ever.
typedef __attribute__((swiftcall)) void (*enqueue_original)(void *task);
extern __attribute__((swiftcall, weak)) void (*swift_task_enqueueGlobal_hook)(void *task, enqueue_original original);
// The two words of the executor are null for the one that tasks have when they have none.
extern __attribute__((swiftcall)) void swift_job_run(void *task, void *identity, void *implementation);

static void (*enqueue_task)(void *task);

static __attribute__((swiftcall)) void enqueue(void *task, enqueue_original original) {
    (void)original;
    enqueue_task(task);
}

void deferd_redirect_tasks(void (*to)(void *task)) {
    if (&swift_task_enqueueGlobal_hook == NULL) return;
    enqueue_task = to;
    swift_task_enqueueGlobal_hook = enqueue;
}

void deferd_run_task(void *task) { swift_job_run(task, NULL, NULL); }
