// Why the core is sound, on one page. Every change of a file in this directory must keep this page true.
//
// OWNERSHIP
//   A Deferred owns its waiters: `head`, then each one's `next`, are strong. `last` is strong as well, and `previous`
//   is unowned, which the language checks. A waiter does not own its upstream. Its upward reference
//   (`UpstreamReference`) is set exactly as long as the waiter is in that upstream's list. A Deferred that is released
//   empties its list in `deinit`, and takes each waiter's lock to do so. Therefore the holder of a waiter's lock finds
//   either no upstream, or one whose memory exists; `revived()` turns it into a counted reference or nil. No uncounted
//   reference leaves the lock. All other references are strong: a trampoline's to due Deferreds, a job's to its link, a
//   list's to its members.
//
// ONE LOCK PER WAITER, in a bit of its word
//   L1. A thread that holds a lock never waits for another. It only tries a second and a third lock; if one is taken,
//       the thread releases all its locks and starts again. Hence there is no lock order and no deadlock, even if
//       Deferreds wait in a circle.
//   L2. A check under a lock is not relied on after the lock is released; related checks and changes happen under all
//       the locks concerned.
//   L3. A thread takes a constant number of steps under a lock (a backlog of progress has at most 16 values), calls no
//       foreign code, and releases no last reference: such references are carried out of the lock.
//
// WHICH LOCK PROTECTS A FIELD (W is a waiter, U its upstream)
//   marks                         change under W's lock; may be outdated if read without it
//   upstream, next, previous,     the tie: change under W's and U's lock together, so either lock is enough to read;
//   isInterested, seen            of a waiter that is in no list: W's lock, or no other thread knows W yet
//   head, last, interest,         U's lock
//   followers, extras
//   step                          W's lock; while `running` is set, the thread that set it
//   forward                       W's lock
//   storage                       written once, under the lock, before `resolved`; read after seeing `resolved`
//   in `deinit`                   the object's own fields need no lock, because no reference exists
//
// WHO RUNS A WAITER
//   A waiter leaves a list in one of four ways, each under both locks, so exactly one of them happens:
//     the upstream has resolved and is delivered  then the delivering thread runs it, and it is `running`
//                                                 or, until its executor comes, `scheduled`
//     it is withdrawn (`leave`)                   then the withdrawing thread ends it
//     the upstream was released (`popOrphan`)     then it is `orphaned`, and its closure is released
//     the upstream stepped aside                  then it is in another list, under the same three locks
//   A running link settles itself, or waits for the Deferred that its closure returned (`wait`), in one step under both
//   locks. A cancellation meets it before that (in the upstream's list), while it runs (it fails at once, and `wait`
//   finds that and withdraws), or after (in the new list). There is no moment in between.
//   `delivering` is set by the thread that makes the first callback due, and cleared by the delivering thread under the
//   lock under which it found no more callbacks. So a callback is added either before that, and delivered, or after, by
//   a new delivery.
//
// WHY CHAINS STAY SHORT
//   In a loop (a closure of `flatMap` returns the next round), link n waits for link n+1. When link n+1 runs and its
//   closure returns link n+2, it steps aside: its only waiter, link n, moves to the list of link n+2 under the locks of
//   all three, and link n+1 keeps only a strong reference to link n+2, in `forward`. It does so only if the delivering
//   thread's reference is the only one, so it is released at once: two links of the loop exist at any time. If another
//   thread still obtains it, through a weak reference, nothing is lost: `append`, `cancel`, `outcome` and `wait` find
//   `forwarded` under its lock and make it wait after all (`stepBack`). So the single reference is a condition of short
//   chains, not of correctness. The waiter takes the outcome unchanged (`transparent`), so it has the type that its
//   step expects; it is interested, and its interest replaces the link's.
//
// WHY THE STACK IS BOUNDED
//   A callback that makes a Deferred due puts it on its thread's trampoline, whose loop is at the bottom of the stack.
//   Cancellation and the search for cycles go up in a loop with a list of their own. A released Deferred does not
//   release its list by recursion: `abandonWaiters` takes one waiter after the other, and the waiters that these
//   release in turn go on the thread's list of orphans, whose loop is at the bottom as well.
//
// CYCLES
//   Only a `wait` or a `stepAside` closes a cycle: a new link has no waiters. Each sets its own tie under the locks and
//   then searches for a cycle, so of several that close one together, the last sees all ties.
