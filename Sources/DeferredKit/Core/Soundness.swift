// Why the core is sound, on one page. Whoever changes a file of this directory changes this one, too.
//
// WHO OWNS WHOM
//   A Deferred owns its waiters: `head`, then each one's `next`, are strong. `last` is strong as well, and `previous` is
//   unowned, which the language checks. A waiter does not own its upstream. Its way up (`UpstreamReference`) is set
//   exactly as long as it is in that upstream's list. A Deferred that goes empties its list in `deinit`, and for each
//   waiter takes that waiter's lock. So: whoever holds a waiter's lock finds either no upstream, or one whose memory is
//   there; `revived()` makes of it a counted reference or nil. Nothing uncounted leaves the lock.
//   All other references are strong: a trampoline's to what is due, a job's to its link, a list's to its members.
//
// ONE LOCK A WAITER, in a bit of its word
//   L1. Nobody waits for a lock who holds one. A second and a third lock are only tried; who finds one taken gives up
//       all he has and begins anew. Hence no order of locks, and no deadlock, also where Deferreds wait in a circle.
//   L2. What was checked under a lock is not relied on after it was given up; what has to hold together is checked and
//       done under all the locks it is about.
//   L3. Under a lock a constant number of steps is made (a backlog of progress has at most 16 values), nothing that the
//       library does not own is called, and no last reference is released: what goes is carried out of the lock.
//
// WHO MAY TOUCH A FIELD (W is a waiter, U its upstream)
//   marks                         change under W's lock; read without it, they only ever tell what was
//   upstream, next, previous,     the tie: change under W's and U's lock together, so each of the two is enough to read;
//   isInterested, seen            of a waiter that is in no list: W's lock, or nobody else knows W yet
//   head, last, interest,         U's lock
//   followers, extras
//   step                          W's lock; while `running` is set, the thread that set it
//   forward                       W's lock
//   storage                       written once, under the lock, before `resolved`; read by who saw `resolved`
//   in `deinit`                   no lock is needed for what is the object's own, as nobody has a reference
//
// WHOSE TURN IT IS
//   A waiter leaves a list in one of four ways, each under both locks, so that exactly one of them happens:
//     the upstream has resolved and is delivered  then the delivering thread runs it, and it is `running`
//                                                 or, until its executor comes, `scheduled`
//     it is withdrawn (`leave`)                   then who withdrew it ends it
//     the upstream went (`popOrphan`)             then it is `orphaned`, and its closure is released
//     the upstream stepped aside                  then it is in another list, under the same three locks
//   A link that is running settles itself, or waits for what its closure returned (`wait`), which is one step under both
//   locks. Who cancels meets it before (in the upstream's list), while it runs (fails it at once, and `wait` finds that
//   and withdraws), or after (in the new list). There is no moment in between.
//   `delivering` is set by who makes the first callback due, and cleared by the delivering thread under the lock under
//   which it found nothing more; so a callback is added either before that, and delivered, or after, by a new delivery.
//
// WHY CHAINS STAY SHORT
//   In a loop (a closure of `flatMap` returns the next round) link n waits for link n+1. When link n+1 is run and its
//   closure returns link n+2, it steps aside: its only waiter, link n, is put in the list of link n+2 under the locks of
//   all three, and link n+1 keeps nothing but a strong reference to link n+2, in `forward`. It does that only if the
//   delivering thread's reference is the only one, and so it is released at once: at any time two links of the loop are
//   alive. Should somebody get hold of it all the same (by a weak reference of his), nothing is lost: `append`, `cancel`,
//   `outcome` and `wait` on it find `forwarded` under its lock and make it wait after all (`stepBack`). So that it was
//   unknown is no condition of being right, only of being short. The waiter takes the outcome as it is (`transparent`),
//   so it has the type that its step expects; it is interested, and its interest replaces the link's.
//
// WHY THE STACK IS BOUNDED
//   A callback that makes something due puts it in its thread's trampoline, whose loop is at the bottom of the stack.
//   Going up (cancellation, the search for cycles) is a loop with a list of its own. A Deferred that goes does not
//   release its list by recursion: `abandonWaiters` takes one waiter after the other, and what they release in turn
//   is put in the thread's list of orphans, whose loop is at the bottom as well.
//
// CYCLES
//   A circle is closed by a `wait` or a `stepAside`, as a new link has no waiters. Each sets its own tie under the
//   locks and looks for a circle afterwards, so of several that close one together the last sees all ties.
