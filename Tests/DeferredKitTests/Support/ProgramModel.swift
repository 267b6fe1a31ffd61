import DeferredKit

/// The rules in the plainest form: objects that never go, and a search that says which of them would be there.
final class ProgramModel {
    enum Outcome: Equatable { case value(Int), cancelled, cycle }

    final class Node {
        enum Role { case promise, link(ProgramLink, inner: Node?), observer(Int, ProgramAction) }
        let number: Int
        let role: Role
        var outcome: Outcome?
        var waiters: [Node] = []
        var upstream: Node?
        var isInterested = false
        var isCommitted = false
        var isCancelled = false
        var isDelivering = false
        /// Its closure, or a promise's `onCancel`, is still there.
        var hasClosure = true
        var answer = 0

        init(_ number: Int, _ role: Role) {
            self.number = number
            self.role = role
        }

        var isLink: Bool { if case .observer = role { false } else { true } }
    }

    private(set) var journal: [String] = []
    private var promises: [Node?] = []
    private var handles: [Node?] = []
    private var due: [Node] = []
    private var fresh: [Node] = []
    private var current: Node?
    private var isActive = false
    private var all: [Node] = []

    // MARK: Live Deferreds

    private var living: Set<ObjectIdentifier> {
        var open = (promises + handles + [current]).compactMap { $0 } + due + fresh
        var seen: Set<ObjectIdentifier> = []
        while let node = open.popLast() {
            guard seen.insert(ObjectIdentifier(node)).inserted else { continue }
            open += node.waiters
            if case .link(_, let inner?) = node.role, node.hasClosure { open.append(inner) }
        }
        return seen
    }

    // MARK: Reference cycles

    /// Whether a link of `one` that returns `other` is released in the end: Deferreds whose closures retain each other
    /// in a circle are released only at resolution, which is correct and not tested here.
    func mayFollow(_ index: Int, _ other: Int) -> Bool {
        guard index < handles.count, let upstream = handles[index], let inner = handles[other] else { return true }
        return !leads(from: inner, to: upstream, byClosures: true)
    }

    func mayBind(_ index: Int, to other: Int) -> Bool {
        guard let node = promises[index], let inner = handles[other] else { return true }
        return !leads(from: node, to: inner, byClosures: true) || leads(from: node, to: inner, byClosures: false)
    }

    private func leads(from start: Node, to end: Node, byClosures: Bool) -> Bool {
        var open = [start]
        var seen: Set<ObjectIdentifier> = []
        while let node = open.popLast() {
            if node === end { return true }
            guard seen.insert(ObjectIdentifier(node)).inserted else { continue }
            open += node.waiters
            guard byClosures else { continue }
            if case .link(_, let inner?) = node.role, node.hasClosure { open.append(inner) }
            // A link that returns this Deferred will wait for it.
            for other in all where other.hasClosure {
                if case .link(_, let inner?) = other.role, inner === node { open.append(other) }
            }
        }
        return false
    }

    /// Removes callbacks that can no longer be called from all Deferreds whose upstream was released, until none is
    /// left.
    private func settleLife() {
        while true {
            let living = living
            var changed = false
            for node in all where node.upstream != nil || node.hasClosure {
                let isGone = !living.contains(ObjectIdentifier(node))
                let isOrphan = node.upstream.map { !living.contains(ObjectIdentifier($0)) } ?? false
                guard isGone || isOrphan else { continue }
                if node.hasClosure || node.upstream != nil { changed = true }
                node.hasClosure = false
                if let upstream = node.upstream { upstream.waiters = upstream.waiters.filter { $0 !== node } }
                node.upstream = nil
                // A Deferred that will never resolve releases its consumers.
                guard isOrphan, node.outcome == nil else { continue }
                if node.isCancelled { resolve(node, .cancelled) } else { letGo(node) }
            }
            if !changed { return }
        }
    }

    private func letGo(_ node: Node) {
        let waiters = node.waiters
        node.waiters = []
        for waiter in waiters {
            waiter.upstream = nil
            waiter.hasClosure = false
            letGo(waiter)
        }
    }

    /// How many closures there are.
    var closures: Int {
        settleLife()
        let living = living
        return all.count { $0.hasClosure && living.contains(ObjectIdentifier($0)) }
    }

    // MARK: Steps

    func makePromise(_ answer: Int) {
        let node = Node(handles.count, .promise)
        node.answer = answer
        all.append(node)
        promises.append(node)
        handles.append(node)
    }

    func link(_ index: Int, _ kind: ProgramLink) {
        guard let upstream = handles[index] else { return }
        var inner: Node?
        if case .flatMap(let other) = kind { inner = handles[other] }
        let node = Node(handles.count, .link(kind, inner: inner))
        node.isInterested = true
        all.append(node)
        handles.append(node)
        add(node, to: upstream)
    }

    func observe(_ index: Int, _ number: Int, _ action: ProgramAction) {
        guard let upstream = handles[index] else { return }
        let node = Node(number, .observer(number, action))
        all.append(node)
        add(node, to: upstream)
    }

    func begin(_ action: ProgramAction) {
        act(action)
        settleLife()
    }

    func bind(_ index: Int, to other: Int) {
        guard let node = promises[index], let inner = handles[other] else { return }
        enter {
            guard node.outcome == nil, !node.isCommitted else { return }
            node.isCommitted = node !== inner
            node.isInterested = true
            if node !== inner { node.hasClosure = false }
            pause(node, on: inner)
        }
        settleLife()
    }

    private func act(_ action: ProgramAction) {
        switch action {
        case .none: break
        case .succeed(let index):
            guard index < promises.count, let node = promises[index], !node.isCommitted else { return }
            resolve(node, .value(index))
        case .succeedTwo(let first, let second):
            act(.succeed(first))
            act(.succeed(second))
        case .cancel(let index): if index < handles.count, let node = handles[index] { enter { cancel(node) } }
        case .drop(let index): if index < handles.count { handles[index] = nil }
        case .dropPromise(let index): if index < promises.count { promises[index] = nil }
        }
        settleLife()
    }

    // MARK: Rules

    private func add(_ waiter: Node, to node: Node) {
        waiter.upstream = node
        node.waiters.append(waiter)
        if node.outcome != nil { deliver(node) }
    }

    private func resolve(_ node: Node, _ outcome: Outcome) {
        guard node.outcome == nil else { return }
        node.outcome = outcome
        if case .promise = node.role { node.hasClosure = false }
        if !node.waiters.isEmpty { deliver(node) }
    }

    private func deliver(_ node: Node) {
        guard !node.isDelivering else { return }
        node.isDelivering = true
        fresh.append(node)
        enter {}
    }

    private func enter(_ body: () -> Void) {
        guard !isActive else { return body() }
        isActive = true
        body()
        while let node = next() {
            let waiter = node.waiters.removeFirst()
            waiter.upstream = nil
            current = node
            if let outcome = node.outcome { fire(waiter, outcome) }
            current = nil
            if node.waiters.isEmpty { node.isDelivering = false } else { due.append(node) }
        }
        isActive = false
    }

    private func next() -> Node? {
        due += fresh.reversed()
        fresh = []
        return due.popLast()
    }

    private func fire(_ waiter: Node, _ outcome: Outcome) {
        let hadClosure = waiter.hasClosure
        if waiter.isLink, !waiter.isCommitted { waiter.hasClosure = false }
        guard waiter.outcome == nil else { return }
        switch waiter.role {
        case .promise: resolve(waiter, outcome)
        case .observer(let number, let action):
            guard hadClosure else { return }
            journal.append("u\(number):\(text(outcome))")
            act(action)
            waiter.hasClosure = false
        case .link(let kind, let inner):
            if waiter.isCommitted { return resolve(waiter, outcome) }
            if kind == .both {
                journal.append("b\(waiter.number):\(text(outcome))")
                return resolve(waiter, .value(0))
            }
            guard case .value(let value) = outcome else { return resolve(waiter, outcome) }
            if kind == .map {
                journal.append("m\(waiter.number):\(value)")
                return resolve(waiter, .value(value + 1))
            }
            journal.append("f\(waiter.number):\(value)")
            guard let inner else { return resolve(waiter, .value(value)) }
            waiter.isCommitted = true
            pause(waiter, on: inner)
        }
    }

    private func pause(_ node: Node, on inner: Node) {
        var above: Node? = inner
        while let current = above {
            if current === node { return resolve(node, .cycle) }
            above = current.outcome == nil ? current.upstream : nil
        }
        if let outcome = inner.outcome, !inner.isDelivering { return resolve(node, outcome) }
        node.upstream = inner
        inner.waiters.append(node)
        // A cancelled Deferred that continues wants no new upstream.
        guard case .link = node.role, node.isCancelled else { return }
        node.isInterested = false
        if !inner.waiters.contains(where: { $0.isInterested }) { cancel(inner) }
    }

    private func cancel(_ start: Node) {
        settleLife()
        var node = start
        while node.outcome == nil {
            node.isCancelled = true
            guard let upstream = node.upstream else {
                if case .promise = node.role, node.hasClosure, !node.isCommitted {
                    node.hasClosure = false
                    journal.append("c\(node.number)")
                    if node.answer == 1 { resolve(node, .value(5)) }
                }
                return resolve(node, .cancelled)
            }
            if upstream.outcome != nil { return resolve(node, .cancelled) }
            node.isInterested = false
            if upstream.waiters.contains(where: { $0.isInterested }) {
                upstream.waiters = upstream.waiters.filter { $0 !== node }
                node.upstream = nil
                node.hasClosure = false
                return resolve(node, .cancelled)
            }
            node = upstream
        }
    }

    private func text(_ outcome: Outcome) -> String {
        switch outcome {
        case .value(let value): "\(value)"
        case .cancelled: "cancelled"
        case .cycle: "cycle"
        }
    }
}
