#ifndef DEFERD_TASKS_H
#define DEFERD_TASKS_H

/// Has the Swift runtime give the tasks that belong to no executor to `to` instead of libdispatch's pool, which looks
/// after its threads every second from its first task on, for as long as the process lives.
///
/// `to` is to have each task run once, with `deferd_run_task`. To be called once, before the first such task.
void deferd_redirect_tasks(void (*to)(void *task));

/// Runs a task on this thread up to where it waits.
void deferd_run_task(void *task);

#endif
