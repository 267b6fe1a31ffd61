import JobModel
import Testing

@testable import JobEngine

@Suite struct JobWatchesTests {
    private final class Watcher: JobWatcher {
        let name: String
        init(_ name: String) { self.name = name }
        func receive(_ event: JobEvent) {}
        func receive(_ batch: ProgressBatch) {}
    }

    private let root = Caller(uid: 0, isAdmin: true)
    private let own = Caller(uid: 1, isAdmin: false)
    private let other = Caller(uid: 2, isAdmin: false)

    private func job(_ id: JobID, owner: UInt32 = 1, tags: [JSON] = [], parent: JobID? = nil) throws -> Job {
        let spec = try JobSpecReader.spec(["source": ["type": "error"], "tags": .array(tags)], limits: JobLimits())
        let place = parent.map { Job.Parent(job: $0, link: 0, index: 0, depth: 1) }
        var job = Job(submitting: spec, owner: owner, parent: place, at: Timestamp(milliseconds: 0))
        job.id = id
        return job
    }

    private func names(_ watchers: [any JobWatcher]) -> [String] {
        watchers.compactMap { ($0 as? Watcher)?.name }
    }

    @Test func watch_byNumber_hearsOfItsJobs() throws {
        var watches = JobWatches()
        let first = watches.add(WatchScope(.jobs([7, 8, 7])), own, Watcher("a"))
        _ = watches.add(WatchScope(.jobs([8])), own, Watcher("b"))
        #expect(watches.count == 2)
        #expect(names(watches.watchers(of: try job(7), parents: [])) == ["a"])
        #expect(names(watches.watchers(of: try job(8), parents: [])) == ["a", "b"])
        #expect(watches.watchers(of: try job(9), parents: []).isEmpty)
        watches.remove(first)
        watches.remove(first)
        #expect(names(watches.watchers(of: try job(8), parents: [])) == ["b"] && watches.count == 1)
        #expect(watches.watchers(of: try job(7), parents: []).isEmpty)
    }

    @Test func watch_byNumber_hearsNothing_afterTheEnd() throws {
        var watches = JobWatches()
        let number = watches.add(WatchScope(.jobs([7, 8])), own, Watcher("a"))
        watches.finished(7)
        #expect(watches.watchers(of: try job(7), parents: []).isEmpty)
        #expect(names(watches.watchers(of: try job(8), parents: [])) == ["a"])
        watches.remove(number)
        #expect(watches.count == 0)
    }

    @Test func watch_ofATagOrAll_hearsOfJobsThatTheCallerSees() throws {
        var watches = JobWatches()
        _ = watches.add(WatchScope(.tag("t")), own, Watcher("own t"))
        _ = watches.add(WatchScope(.tag("t")), other, Watcher("other t"))
        _ = watches.add(WatchScope(.tag("t")), root, Watcher("root t"))
        _ = watches.add(WatchScope(.all), own, Watcher("own all"))
        _ = watches.add(WatchScope(.all), root, Watcher("root all"))
        #expect(
            names(watches.watchers(of: try job(1, tags: ["s", "t"]), parents: [])) == [
                "own t", "root t", "own all", "root all",
            ])
        #expect(names(watches.watchers(of: try job(1), parents: [])) == ["own all", "root all"])
        #expect(
            names(watches.watchers(of: try job(1, owner: 2, tags: ["t"]), parents: [])) == [
                "other t", "root t", "root all",
            ])
        watches.finished(1)
        #expect(names(watches.watchers(of: try job(1), parents: [])) == ["own all", "root all"], "it may be retried")
    }

    @Test func watcher_hearsOnce_howeverOftenItApplies() throws {
        var watches = JobWatches()
        _ = watches.add(WatchScope(.tag("t"), includesChildren: true), own, Watcher("tag"))
        _ = watches.add(WatchScope(.jobs([1, 2]), includesChildren: true), own, Watcher("jobs"))
        let parent = try job(1, tags: ["t", "t"])
        #expect(names(watches.watchers(of: parent, parents: [])) == ["tag", "jobs"])
        #expect(names(watches.watchers(of: try job(2, tags: ["t"], parent: 1), parents: [parent])) == ["tag", "jobs"])
    }

    @Test func children_areHeardOf_onlyWhereAskedFor() throws {
        var watches = JobWatches()
        for children in [false, true] {
            let name = children ? "with" : "without"
            _ = watches.add(WatchScope(.jobs([1]), includesChildren: children), own, Watcher("job \(name)"))
            _ = watches.add(WatchScope(.tag("t"), includesChildren: children), own, Watcher("tag \(name)"))
            _ = watches.add(WatchScope(.all, includesChildren: children), own, Watcher("all \(name)"))
        }
        let parent = try job(1, tags: ["t"])
        let child = try job(2, parent: 1)
        let grandchild = try job(3, parent: 2)
        #expect(names(watches.watchers(of: parent, parents: [])).count == 6)
        // The tag is that of the job at the top.
        #expect(names(watches.watchers(of: child, parents: [parent])) == ["job with", "tag with", "all with"])
        #expect(
            names(watches.watchers(of: grandchild, parents: [child, parent])) == ["job with", "tag with", "all with"])
        // A child that is watched by its own number.
        _ = watches.add(WatchScope(.jobs([2])), own, Watcher("child"))
        #expect(names(watches.watchers(of: child, parents: [parent])).contains("child"))
        #expect(!names(watches.watchers(of: grandchild, parents: [child, parent])).contains("child"))
    }

    @Test func intervals_areThoseOfWhoeverHears() throws {
        var watches = JobWatches()
        func intervals() throws -> Set<Int> { Set(watches.hearers(of: try job(1), parents: []).map(\.interval)) }
        #expect(try intervals().isEmpty)
        _ = watches.add(WatchScope(.jobs([1]), interval: 0.25), own, Watcher("a"))
        _ = watches.add(WatchScope(.all, interval: 1), own, Watcher("b"))
        _ = watches.add(WatchScope(.all, interval: 0.0001), own, Watcher("c"))
        _ = watches.add(WatchScope(.jobs([2]), interval: 5), own, Watcher("d"))
        #expect(try intervals() == [250, 1000, 1])
        for (interval, heard) in [(1000, ["b"]), (250, ["a"]), (5000, [])] {
            let hearers = watches.hearers(of: try job(1), parents: []).filter { $0.interval == interval }
            #expect(names(hearers.flatMap { watches.watchers(in: $0.audience) }) == heard)
        }
    }

    // MARK: - Audiences

    @Test func watches_areOneAudience_whereTheyHearOfTheSame() throws {
        var watches = JobWatches()
        let admin = Caller(uid: 9, isAdmin: true)
        func audiences() throws -> Int { watches.hearers(of: try job(1, tags: ["t"]), parents: []).count }
        for caller in [root, admin, own, own] { _ = watches.add(WatchScope(.all), caller, Watcher("all")) }
        #expect(try audiences() == 2, "administrators see the same")
        for caller in [root, own, other] { _ = watches.add(WatchScope(.jobs([1])), caller, Watcher("job")) }
        #expect(try audiences() == 3)
        _ = watches.add(WatchScope(.all, interval: 1), root, Watcher("seldom"))
        _ = watches.add(WatchScope(.all, includesChildren: true), root, Watcher("children"))
        for _ in 0..<2 { _ = watches.add(WatchScope(.tag("t")), root, Watcher("tag")) }
        #expect(try audiences() == 6)
        #expect(watches.watchers(of: try job(1, tags: ["t"]), parents: []).count == 11 && watches.count == 11)
    }

    @Test func audience_ends_withItsLastWatch() throws {
        var watches = JobWatches()
        let first = watches.add(WatchScope(.all), root, Watcher("a"))
        #expect(watches.isAlone(first))
        let second = watches.add(WatchScope(.all), root, Watcher("b"))
        #expect(!watches.isAlone(first) && !watches.isAlone(second))
        watches.remove(first)
        #expect(names(watches.watchers(of: try job(1), parents: [])) == ["b"])
        watches.remove(second)
        #expect(watches.hearers(of: try job(1), parents: []).isEmpty)
        let third = watches.add(WatchScope(.all), root, Watcher("c"))
        #expect(watches.isAlone(third))
        #expect(names(watches.watchers(of: try job(1), parents: [])) == ["c"])
    }

    @Test func laterWatch_hearsOfARetry_ofWhichAnEarlierOneHeardTheEnd() throws {
        var watches = JobWatches()
        let earlier = watches.add(WatchScope(.jobs([7, 8])), own, Watcher("earlier"))
        watches.finished(7)
        let later = watches.add(WatchScope(.jobs([7, 8])), own, Watcher("later"))
        #expect(names(watches.watchers(of: try job(7), parents: [])) == ["later"])
        #expect(names(watches.watchers(of: try job(8), parents: [])) == ["earlier", "later"])
        watches.remove(earlier)
        let third = watches.add(WatchScope(.jobs([7, 8])), own, Watcher("third"))
        #expect(names(watches.watchers(of: try job(7), parents: [])) == ["later", "third"])
        #expect(!watches.isAlone(third))
        watches.remove(later)
        watches.remove(third)
        #expect(watches.watchers(of: try job(8), parents: []).isEmpty && watches.shortest == nil)
    }

    @Test func shortest_isThatOfAnyAudience() {
        var watches = JobWatches()
        let numbers = [0.5, 0.25, 0.25, 3].map {
            watches.add(WatchScope(.tag("\($0)"), interval: $0), own, Watcher("a"))
        }
        #expect(watches.shortest == 250)
        watches.remove(numbers[1])
        #expect(watches.shortest == 250)
        watches.remove(numbers[2])
        #expect(watches.shortest == 500)
        watches.remove(numbers[0])
        #expect(watches.shortest == 3000)
    }

    @Test func version_changes_wheneverOthersHearOfAJob() throws {
        var watches = JobWatches()
        var seen: Set<Int> = [watches.version]
        let first = watches.add(WatchScope(.jobs([1, 2])), own, Watcher("a"))
        #expect(seen.insert(watches.version).inserted)
        watches.finished(1)
        #expect(seen.insert(watches.version).inserted)
        watches.remove(first)
        #expect(seen.insert(watches.version).inserted)
        let numbers = (0..<2).map { _ in watches.add(WatchScope(.all), own, Watcher("b")) }
        #expect(seen.insert(watches.version).inserted)
        watches.remove(numbers[0])
        watches.finished(7)
        #expect(!seen.insert(watches.version).inserted, "its audience hears of the same")
        watches.familyCame()
        #expect(seen.insert(watches.version).inserted)
    }
}
