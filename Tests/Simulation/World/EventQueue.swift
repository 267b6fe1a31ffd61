/// Future events in the order of their times; events of one time stay in insertion order.
struct EventQueue<Event> {
    private struct Key {
        var time: Int64
        var number: Int64
        var slot: Int32

        static func < (left: Key, right: Key) -> Bool {
            left.time == right.time ? left.number < right.number : left.time < right.time
        }
    }

    private var heap: [Key] = []
    /// Events stay in place while their keys are sorted.
    private var events: [Event?] = []
    private var free: [Int32] = []
    private var lastNumber: Int64 = 0

    var count: Int { heap.count }
    var nextTime: Int64? { heap.first?.time }

    mutating func add(_ event: Event, at time: Int64) {
        lastNumber += 1
        let slot: Int32
        if let last = free.popLast() {
            slot = last
            events[Int(last)] = event
        } else {
            slot = Int32(events.count)
            events.append(event)
        }
        heap.append(Key(time: time, number: lastNumber, slot: slot))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child] < heap[parent] else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    mutating func popFirst() -> Event? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink()
        }
        defer { events[Int(first.slot)] = nil }
        free.append(first.slot)
        return events[Int(first.slot)]
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child] < heap[least] {
                least = child
            }
            if least == parent { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
