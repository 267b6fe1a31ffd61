import DeferredKit
import Testing

/// Random programs that drop their references, compared step by step with a model that is too simple to be wrong.
@Suite struct RandomProgramTests {
    @Test(arguments: 0..<8) func program_doesWhatTheModelSays(part: UInt64) {
        for seed in (part * 100)..<((part + 1) * 100) {
            let problem = RandomProgram(seed).run()
            #expect(problem == nil)
            if problem != nil { return }
        }
    }
}

/// Does the same to the library and to the model, one step after the other.
private final class RandomProgram: Sendable {
    typealias Plain = Deferred<Int, any Error>

    // Unsafe: one thread runs a program.
    nonisolated(unsafe) private var dice: Dice
    nonisolated(unsafe) private var promises: [Promise<Int, any Error>?] = []
    nonisolated(unsafe) private var handles: [Plain?] = []
    nonisolated(unsafe) private let model = Model()
    nonisolated(unsafe) private var steps: [String] = []
    private let seed: UInt64
    private let journal = Journal<String>()
    private let population = Population()

    init(_ seed: UInt64) {
        self.seed = seed
        dice = Dice(seed)
    }

    func run() -> String? {
        for _ in 0..<50 {
            step()
            if let problem { return problem }
        }
        for index in handles.indices { drop(index) }
        for index in promises.indices { dropPromise(index) }
        return problem
    }

    private var problem: String? {
        let living = model.closures
        guard journal.entries != model.journal || population.count != living else { return nil }
        return """
            seed \(seed) after \(steps.joined(separator: ", ")):
            \(journal.entries.joined(separator: " ")), \(population.count) closures
            \(model.journal.joined(separator: " ")), \(living) expected
            """
    }

    private func step() {
        let index = handles.isEmpty ? 0 : dice.roll(handles.count)
        switch dice.roll(20) {
        case 0, 1, 2: makePromise(answer: dice.roll(3))
        case 3, 4, 5: link(index, .map)
        case 6, 7, 8:
            let inner = handles.isEmpty ? 0 : dice.roll(handles.count)
            if model.mayFollow(index, inner) { link(index, .flatMap(inner)) }
        case 9: link(index, .both)
        case 10, 11: observe(index, action())
        case 12, 13, 14: if !promises.isEmpty { perform(.succeed(dice.roll(promises.count))) }
        case 15: if !promises.isEmpty { bind(dice.roll(promises.count), to: index) }
        case 16: perform(.cancel(index))
        case 17: if !promises.isEmpty { perform(.dropPromise(dice.roll(promises.count))) }
        default: perform(.drop(index))
        }
    }

    private func action() -> Action {
        let index = dice.roll(handles.count + 1)
        switch dice.roll(6) {
        case 0: return .succeed(dice.roll(promises.count + 1))
        case 1: return .cancel(index)
        case 2: return .drop(index)
        case 3: return .dropPromise(dice.roll(promises.count + 1))
        default: return .none
        }
    }

    // MARK: Steps

    private func makePromise(answer: Int) {
        let (number, token) = (handles.count, population.token())
        steps.append("p\(number)")
        let onCancel: @Sendable (Promise<Int, any Error>) -> Void = { [journal] promise in
            journal.note("c\(number)")
            if answer == 1 { promise.succeed(5) }
            withExtendedLifetime(token) {}
        }
        let promise = Promise(onCancel: onCancel)
        promises.append(promise)
        handles.append(promise.deferred)
        model.makePromise(answer)
    }

    private func link(_ index: Int, _ kind: Kind) {
        guard index < handles.count, let upstream = handles[index] else { return }
        let (number, token) = (handles.count, population.token())
        steps.append("\(kind) of \(index) is \(number)")
        // Also where it runs at once: the result comes into the table first.
        handles.append(nil)
        model.link(index, kind)
        switch kind {
        case .map:
            handles[number] = upstream.map { [journal] value in
                withExtendedLifetime(token) { journal.note("m\(number):\(value)") }
                return value + 1
            }
        case .both:
            handles[number] = upstream.both { [journal] outcome in
                withExtendedLifetime(token) { journal.note("b\(number):\(describe(outcome))") }
                return 0
            }
        case .flatMap(let other):
            let inner = handles[other]
            handles[number] = upstream.flatMap { [journal] value in
                withExtendedLifetime(token) { journal.note("f\(number):\(value)") }
                return inner ?? .succeeded(value)
            }
        }
    }

    private func observe(_ index: Int, _ action: Action) {
        guard index < handles.count, let deferred = handles[index] else { return }
        let (number, token) = (steps.count, population.token())
        steps.append("upon \(index) does \(action)")
        model.observe(index, number, action)
        deferred.upon { [self] outcome in
            journal.note("u\(number):\(describe(outcome))")
            withExtendedLifetime(token) { act(action) }
        }
    }

    private func perform(_ action: Action) {
        steps.append("\(action)")
        model.begin(action)
        act(action)
    }

    /// What happens in the library, by itself or in a callback.
    private func act(_ action: Action) {
        switch action {
        case .none: break
        case .succeed(let index): if index < promises.count { promises[index]?.succeed(index) }
        case .cancel(let index): if index < handles.count { handles[index]?.cancel() }
        // Released after the access to the table, as that may run callbacks.
        case .drop(let index): if index < handles.count { _ = handles[index].take() }
        case .dropPromise(let index): if index < promises.count { _ = promises[index].take() }
        }
    }

    private func bind(_ index: Int, to other: Int) {
        guard let promise = promises[index], other < handles.count, let deferred = handles[other],
            model.mayBind(index, to: other)
        else { return }
        steps.append("bind p\(index) to \(other)")
        model.bind(index, to: other)
        promise.resolve(with: deferred)
    }

    private func drop(_ index: Int) { perform(.drop(index)) }
    private func dropPromise(_ index: Int) { perform(.dropPromise(index)) }
}

private enum Kind: Equatable { case map, both, flatMap(Int) }
private enum Action: Equatable { case none, succeed(Int), cancel(Int), drop(Int), dropPromise(Int) }

private func describe(_ outcome: Result<Int, any Error>) -> String {
    switch outcome {
    case .success(let value): "\(value)"
    case .failure(let error): error is CancellationError ? "cancelled" : error is CycleError ? "cycle" : "?"
    }
}

/// Numbers that are the same in every run.
private struct Dice {
    private var state: UInt64

    init(_ seed: UInt64) { state = (seed &+ 1) &* 0x9E37_79B9_7F4A_7C15 }

    mutating func roll(_ sides: Int) -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return Int((state >> 16) % UInt64(sides))
    }
}

/// The rules in the plainest form: objects that never go, and a search that says which of them would be there.
private final class Model {
    enum Outcome: Equatable { case value(Int), cancelled, cycle }

    final class Node {
        enum Role { case promise, link(Kind, inner: Node?), observer(Int, Action) }
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

    // MARK: Who would be there

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

    // MARK: What would hold itself

    /// Whether a link on one that returns the other is released in the end: Deferreds whose closures hold each other in
    /// a circle go at resolution only, which is right and nothing to find out here.
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
            // Who returns this one will wait for it.
            for other in all where other.hasClosure {
                if case .link(_, let inner?) = other.role, inner === node { open.append(other) }
            }
        }
        return false
    }

    /// Takes from everybody whose upstream has gone what can no longer be called, until nothing changes.
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
                // What will never resolve lets go of whoever waits for it.
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

    func link(_ index: Int, _ kind: Kind) {
        guard let upstream = handles[index] else { return }
        var inner: Node?
        if case .flatMap(let other) = kind { inner = handles[other] }
        let node = Node(handles.count, .link(kind, inner: inner))
        node.isInterested = true
        all.append(node)
        handles.append(node)
        add(node, to: upstream)
    }

    func observe(_ index: Int, _ number: Int, _ action: Action) {
        guard let upstream = handles[index] else { return }
        let node = Node(number, .observer(number, action))
        all.append(node)
        add(node, to: upstream)
    }

    func begin(_ action: Action) {
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

    private func act(_ action: Action) {
        switch action {
        case .none: break
        case .succeed(let index):
            guard index < promises.count, let node = promises[index], !node.isCommitted else { return }
            resolve(node, .value(index))
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
        // What was cancelled and goes on all the same wants nothing new.
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
