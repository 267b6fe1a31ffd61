import Foundation

/// `simulate [--seed N] [--seeds N] [--from N] [--hours H] [--jobs N] [--seconds S] [--trace] [--stop] [FILE]`: runs
/// seeds and reports the results. FILE lists seeds to run first, one per line, with their hours.
@main
enum Simulate {
    struct Options {
        var first: UInt64 = 1
        var count = 100
        var listed: [(seed: UInt64, hours: Double?)] = []
        var hours = 24.0
        /// Ends a seed after this many submitted jobs.
        var jobs = Int.max
        var isTraced = false
        /// Starts no further seed after this many seconds of CPU time, not counting listed seeds.
        var seconds = Double.infinity
        /// Stops at the first failing seed.
        var stopsAtFailure = false
    }

    static func main() {
        if CommandLine.arguments.dropFirst().first == "--plant" { plant(CommandLine.arguments) }
        guard let options = options(CommandLine.arguments.dropFirst()) else {
            FileHandle.standardError.write(
                Data(
                    "usage: simulate [--seed N] [--seeds N] [--from N] [--hours H] [--jobs N] [--seconds S] [--trace] [--stop] [FILE]\n"
                        .utf8))
            exit(64)
        }
        var figures = Figures()
        Watchdog.start(hours: options.hours)
        var listedTook = 0.0
        for (seed, hours) in options.listed + (0..<options.count).map({ (options.first &+ UInt64($0), nil) }) {
            // Listed seeds always run, and their time does not count.
            if figures.seeds <= options.listed.count { listedTook = Watchdog.seconds() }
            if figures.seeds >= options.listed.count, Watchdog.seconds() - listedTook > options.seconds { break }
            let failed = run(seed, hours: hours ?? options.hours, options, &figures)
            if failed, options.stopsAtFailure { break }
        }
        print(figures.table(seconds: Watchdog.seconds()))
        exit(figures.failedSeeds == 0 ? 0 : 1)
    }

    /// Plants the mutants of one directory in the sources in another.
    private static func plant(_ arguments: [String]) -> Never {
        guard arguments.count == 4 else { exit(64) }
        do {
            try Mutant.plant(Mutant.all(in: arguments[2]), in: arguments[3])
            exit(0)
        } catch {
            FileHandle.standardError.write(Data("\(error)\n".utf8))
            exit(1)
        }
    }

    /// Runs one seed and returns whether it failed.
    private static func run(_ seed: UInt64, hours: Double, _ options: Options, _ figures: inout Figures) -> Bool {
        Watchdog.begins(seed)
        let world = World(seed: seed, printsTrace: options.isTraced)
        let failure = world.run(hours: hours, jobs: options.jobs)
        world.figures.seeds = 1
        world.figures.failedSeeds = failure == nil ? 0 : 1
        figures.add(world.figures)
        let hash = String(world.trace.hash, radix: 16)
        guard let failure else {
            print("seed \(seed): ok, trace \(hash), \(world.figures.submitted) jobs, \(world.figures.events) events")
            return false
        }
        print(
            "seed \(seed): FAILED, invariant \(failure.invariant) at \(Trace.text(ofTime: failure.time)): "
                + "\(failure.message); trace \(hash); repeat with: make simulate SEED=\(seed) HOURS=\(hours)"
                + (options.jobs < .max ? " JOBS=\(options.jobs)" : ""))
        for line in world.trace.lines { print(line) }
        return true
    }

    private static func options(_ arguments: ArraySlice<String>) -> Options? {
        var options = Options()
        var left = Array(arguments)
        func number<Number: LosslessStringConvertible>(_ type: Number.Type) -> Number? {
            left.isEmpty ? nil : Number(left.removeFirst())
        }
        while !left.isEmpty {
            let name = left.removeFirst()
            switch name {
            case "--seed":
                guard let seed = number(UInt64.self) else { return nil }
                (options.first, options.count) = (seed, 1)
            case "--seeds":
                guard let count = number(Int.self), count >= 0 else { return nil }
                options.count = count
            case "--from":
                guard let seed = number(UInt64.self) else { return nil }
                options.first = seed
            case "--hours":
                guard let hours = number(Double.self), hours >= 0 else { return nil }
                options.hours = hours
            case "--jobs":
                guard let jobs = number(Int.self), jobs > 0 else { return nil }
                options.jobs = jobs
            case "--seconds":
                guard let seconds = number(Double.self) else { return nil }
                options.seconds = seconds
            case "--trace": options.isTraced = true
            case "--stop": options.stopsAtFailure = true
            default:
                guard !name.hasPrefix("--"), let text = try? String(contentsOfFile: name, encoding: .utf8) else {
                    return nil
                }
                options.listed += text.split(separator: "\n").compactMap { line in
                    let words = line.split(separator: " ")
                    return words.first.flatMap { UInt64($0) }.map {
                        ($0, words.dropFirst().first.flatMap { Double($0) })
                    }
                }
            }
        }
        return options
    }
}
