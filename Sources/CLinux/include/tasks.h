#ifndef DEFERD_TASKS_H
#define DEFERD_TASKS_H

/// Has the Swift runtime give the tasks that belong to no executor to `enqueue` instead of libdispatch's pool, which looks
/// after its threads every second from its first task on, for as long as the process lives.
///
/// `enqueue` is to have each task run once, with `deferd_run_task`. To be called once, before the first such task.
void deferd_take_tasks(void (*enqueue)(void *task));

/// Runs a task on this thread up to where it waits.
void deferd_run_task(void *task);

#endif
