import NIOCore

/// A queue per user for a few places, such as threads.
/// Users take turns, and none has more than `perUser` of the `total` places at a time, however long it keeps them.
package struct TurnQueue<Element> {
    private let perUser: Int
    private let total: Int
    private var waiting: [UInt32: CircularBuffer<Element>] = [:]
    /// Users with waiting elements, next first.
    private var turns: [UInt32] = []
    private var running: [UInt32: Int] = [:]
    private var runningCount = 0

    package init(perUser: Int, total: Int) {
        self.perUser = perUser
        self.total = total
    }

    package mutating func append(_ element: Element, for user: UInt32) {
        if waiting[user] == nil { turns.append(user) }
        waiting[user, default: CircularBuffer()].append(element)
    }

    package func count(of user: UInt32) -> Int { waiting[user]?.count ?? 0 }

    /// Returns the next element that may run and counts it as running, or nil if none may.
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

    package mutating func finish(_ user: UInt32) {
        let count = running[user, default: 1] - 1
        running[user] = count > 0 ? count : nil
        runningCount -= 1
    }
}
