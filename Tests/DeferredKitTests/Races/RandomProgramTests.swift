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
    nonisolated(unsafe) private let model = ProgramModel()
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

    private func action() -> ProgramAction {
        let index = dice.roll(handles.count + 1)
        switch dice.roll(7) {
        case 0: return .succeed(dice.roll(promises.count + 1))
        case 1: return .cancel(index)
        case 2: return .drop(index)
        case 3: return .dropPromise(dice.roll(promises.count + 1))
        case 4: return .succeedTwo(dice.roll(promises.count + 1), dice.roll(promises.count + 1))
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

    private func link(_ index: Int, _ kind: ProgramLink) {
        guard index < handles.count, let upstream = handles[index] else { return }
        let (number, token) = (handles.count, population.token())
        steps.append("\(kind) of \(index) is \(number)")
        // Also if it runs at once: the result is stored in the table first.
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

    private func observe(_ index: Int, _ action: ProgramAction) {
        guard index < handles.count, let deferred = handles[index] else { return }
        let (number, token) = (steps.count, population.token())
        steps.append("upon \(index) does \(action)")
        model.observe(index, number, action)
        deferred.upon { [self] outcome in
            journal.note("u\(number):\(describe(outcome))")
            withExtendedLifetime(token) { act(action) }
        }
    }

    private func perform(_ action: ProgramAction) {
        steps.append("\(action)")
        model.begin(action)
        act(action)
    }

    /// An event in the library, outside or inside a callback.
    private func act(_ action: ProgramAction) {
        switch action {
        case .none: break
        case .succeed(let index): if index < promises.count { promises[index]?.succeed(index) }
        case .succeedTwo(let first, let second):
            act(.succeed(first))
            act(.succeed(second))
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

enum ProgramLink: Equatable { case map, both, flatMap(Int) }
enum ProgramAction: Equatable {
    case none, succeed(Int), succeedTwo(Int, Int), cancel(Int), drop(Int), dropPromise(Int)
}

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
