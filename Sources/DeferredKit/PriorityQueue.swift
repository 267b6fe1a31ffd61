/// A queue by priority, highest first, and first in, first out within one priority.
///
/// Adding and removing the first element take constant time in the number of elements, removing another element
/// logarithmic time; all take linear time in the number of different priorities.
struct PriorityQueue<Element> {
    /// Identifies an element for removal before its turn.
    struct Ticket {
        fileprivate let priority: Int
        fileprivate let number: UInt64
    }

    /// The elements of one priority.
    private struct Level {
        /// In order of arrival; nil replaces a removed element. The first `first` elements are gone.
        var elements: [(number: UInt64, element: Element?)] = []
        var first = 0
        var count = 0

        mutating func popFirst() -> Element? {
            while first < elements.count {
                let element = elements[first].element
                elements[first].element = nil
                first += 1
                if element != nil {
                    count -= 1
                    compact()
                    return element
                }
            }
            return nil
        }

        mutating func remove(_ number: UInt64) -> Element? {
            var low = first
            var high = elements.count
            while low < high {
                let middle = (low + high) / 2
                if elements[middle].number < number { low = middle + 1 } else { high = middle }
            }
            guard low < elements.count, elements[low].number == number else { return nil }
            let element = elements[low].element
            elements[low].element = nil
            if element != nil { count -= 1 }
            compact()
            return element
        }

        /// Drops empty slots once they are the majority.
        private mutating func compact() {
            guard elements.count > 2 * count + 32 else { return }
            elements = elements.filter { $0.element != nil }
            first = 0
        }
    }

    private var levels: [Int: Level] = [:]
    /// In ascending order.
    private var priorities: [Int] = []
    private var next: UInt64 = 0

    var isEmpty: Bool { levels.isEmpty }

    /// Every element in order.
    var all: [Element] {
        priorities.reversed().flatMap { levels[$0]?.elements.compactMap(\.element) ?? [] }
    }

    mutating func add(_ element: Element, priority: Int) -> Ticket {
        let ticket = Ticket(priority: priority, number: next)
        next += 1
        if levels[priority] == nil {
            let index = priorities.firstIndex { $0 > priority } ?? priorities.endIndex
            priorities.insert(priority, at: index)
        }
        levels[priority, default: Level()].elements.append((ticket.number, element))
        levels[priority, default: Level()].count += 1
        return ticket
    }

    mutating func popFirst() -> Element? {
        guard let priority = priorities.last else { return nil }
        let element = levels[priority]?.popFirst()
        removeIfEmpty(priority)
        return element
    }

    @discardableResult
    mutating func remove(_ ticket: Ticket) -> Element? {
        let element = levels[ticket.priority]?.remove(ticket.number)
        removeIfEmpty(ticket.priority)
        return element
    }

    private mutating func removeIfEmpty(_ priority: Int) {
        guard levels[priority]?.count == 0 else { return }
        levels[priority] = nil
        priorities.removeAll { $0 == priority }
    }
}
