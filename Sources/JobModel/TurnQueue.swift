/// What waits for one of a few threads, in a queue for each user: users have their turns one after the other, and none
/// has more than `perUser` of the `total` threads at a time, however long it keeps them.
package struct TurnQueue<Element> {
    private let perUser: Int
    private let total: Int
    private var waiting: [UInt32: Line] = [:]
    /// Users with something that waits, the next one first.
    private var turns: [UInt32] = []
    private var running: [UInt32: Int] = [:]
    private var runningCount = 0

    package init(perUser: Int, total: Int) {
        self.perUser = perUser
        self.total = total
    }

    package mutating func append(_ element: Element, for user: UInt32) {
        if waiting[user] == nil { turns.append(user) }
        waiting[user, default: Line()].last.append(element)
    }

    /// What may run next, counted as running from now on; nil where nothing may.
    package mutating func next() -> (user: UInt32, element: Element)? {
        guard runningCount < total,
            let turn = turns.firstIndex(where: { running[$0, default: 0] < perUser })
        else { return nil }
        let user = turns.remove(at: turn)
        guard var queue = waiting.removeValue(forKey: user), let element = queue.popFirst() else { return nil }
        if !queue.isEmpty {
            waiting[user] = queue
            turns.append(user)
        }
        running[user, default: 0] += 1
        runningCount += 1
        return (user, element)
    }

    /// Something of `user` that ran has ended.
    package mutating func finish(_ user: UInt32) {
        let count = running[user, default: 1] - 1
        running[user] = count > 0 ? count : nil
        runningCount -= 1
    }

    /// A queue of two stacks: thousands may wait, and an array would move all of them at each `removeFirst`.
    private struct Line {
        /// The next one is the last.
        private var first: [Element] = []
        /// What came since `first` was filled, in order.
        var last: [Element] = []

        var isEmpty: Bool { first.isEmpty && last.isEmpty }

        mutating func popFirst() -> Element? {
            if first.isEmpty {
                first = last.reversed()
                last = []
            }
            return first.popLast()
        }
    }
}
