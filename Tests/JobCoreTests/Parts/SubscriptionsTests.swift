import JobModel
import TestSupport
import Testing

@testable import JobCore

@Suite struct SubscriptionsTests {
    private func job(_ id: JobID, owner: UInt32 = 1, tags: [JSON] = [], parent: JobID? = nil) throws -> Job {
        let spec = try JobSpecReader.spec(["source": ["type": "error"], "tags": .array(tags)], limits: JobLimits())
        let above = parent.map { Job.Parent(job: $0, link: 0, index: 0, depth: 1) }
        var job = Job(submitting: spec, owner: owner, parent: above, at: Timestamp(milliseconds: 0))
        job.id = id
        return job
    }

    private func subscribers(_ subscriptions: Subscriptions, _ job: Job, _ parents: Job...) -> [SubscriptionID] {
        subscriptions.matches(job, parents: parents.map(Ancestor.init))
            .flatMap { subscriptions.subscribers(of: $0.topic) }
    }

    @Test func subscription_toIds_hearsOfItsJobs() throws {
        var subscriptions = Subscriptions()
        subscriptions.add(1, WatchScope(.jobs([7, 8, 7])), .one)
        subscriptions.add(2, WatchScope(.jobs([8])), .one)
        #expect(subscriptions.count(of: nil) == 2 && subscriptions.count(of: 1) == 2 && subscriptions.count(of: 2) == 0)
        #expect(subscribers(subscriptions, try job(7)) == [1])
        #expect(subscribers(subscriptions, try job(8)) == [1, 2])
        #expect(subscribers(subscriptions, try job(9)).isEmpty)
        subscriptions.remove(1)
        subscriptions.remove(1)
        #expect(subscribers(subscriptions, try job(8)) == [2] && subscriptions.count(of: nil) == 1)
        #expect(subscribers(subscriptions, try job(7)).isEmpty)
    }

    @Test func subscription_toIds_hearsNothing_afterTheEnd() throws {
        var subscriptions = Subscriptions()
        subscriptions.add(1, WatchScope(.jobs([7, 8])), .one)
        subscriptions.finished(7)
        #expect(subscribers(subscriptions, try job(7)).isEmpty)
        #expect(subscribers(subscriptions, try job(8)) == [1])
        subscriptions.remove(1)
        #expect(subscriptions.count(of: nil) == 0)
    }

    @Test func subscription_toATagOrAll_hearsOfJobsThatTheCallerSees() throws {
        var subscriptions = Subscriptions()
        subscriptions.add(1, WatchScope(.tag("t")), .one)
        subscriptions.add(2, WatchScope(.tag("t")), .two)
        subscriptions.add(3, WatchScope(.tag("t")), .root)
        subscriptions.add(4, WatchScope(.all), .one)
        subscriptions.add(5, WatchScope(.all), .root)
        #expect(subscribers(subscriptions, try job(1, tags: ["s", "t"])) == [1, 3, 4, 5])
        #expect(subscribers(subscriptions, try job(1)) == [4, 5])
        #expect(subscribers(subscriptions, try job(1, owner: 2, tags: ["t"])) == [2, 3, 5])
        subscriptions.finished(1)
        #expect(subscribers(subscriptions, try job(1)) == [4, 5], "it may be retried")
    }

    @Test func intervals_areFew_howeverManyAreAskedFor() {
        var subscriptions = Subscriptions()
        for number in 1...20_000 {
            let scope = WatchScope(.all, interval: 0.01 + Double(number) * 0.17)
            #expect(scope.interval >= (0.01 + Double(number) * 0.17).rounded(.down) && scope.interval <= 3600)
            subscriptions.add(SubscriptionID(number), scope, .one)
        }
        #expect(subscriptions.topicCount < 600)
        for exact in [0.01, 0.05, 0.25, 1, 12, 3600] { #expect(WatchScope(.all, interval: exact).interval == exact) }
        for (asked, interval) in [(0.255, 0.26), (12.3, 13), (3599, 3600)] {
            #expect(WatchScope(.all, interval: asked).interval == interval)
        }
        for number in 1...20_000 { subscriptions.remove(SubscriptionID(number)) }
        #expect(subscriptions.topicCount == 0)
    }

    @Test func subscriber_hearsOnce_howeverOftenItApplies() throws {
        var subscriptions = Subscriptions()
        subscriptions.add(1, WatchScope(.tag("t"), includesChildren: true), .one)
        subscriptions.add(2, WatchScope(.jobs([1, 2]), includesChildren: true), .one)
        let parent = try job(1, tags: ["t", "t"])
        #expect(subscribers(subscriptions, parent) == [1, 2])
        #expect(subscribers(subscriptions, try job(2, tags: ["t"], parent: 1), parent) == [1, 2])
    }

    @Test func children_areHeardOf_onlyWhereAskedFor() throws {
        var subscriptions = Subscriptions()
        for (number, children) in [(0, false), (10, true)] as [(SubscriptionID, Bool)] {
            subscriptions.add(number + 1, WatchScope(.jobs([1]), includesChildren: children), .one)
            subscriptions.add(number + 2, WatchScope(.tag("t"), includesChildren: children), .one)
            subscriptions.add(number + 3, WatchScope(.all, includesChildren: children), .one)
        }
        let parent = try job(1, tags: ["t"])
        let child = try job(2, parent: 1)
        let grandchild = try job(3, parent: 2)
        #expect(subscribers(subscriptions, parent).count == 6)
        // The tag is that of the job at the top.
        #expect(subscribers(subscriptions, child, parent) == [11, 12, 13])
        #expect(subscribers(subscriptions, grandchild, child, parent) == [11, 12, 13])
        // A child that is watched by its own id.
        subscriptions.add(99, WatchScope(.jobs([2])), .one)
        #expect(subscribers(subscriptions, child, parent).contains(99))
        #expect(!subscribers(subscriptions, grandchild, child, parent).contains(99))
    }

    @Test func intervals_areThoseOfWhoeverHears() throws {
        var subscriptions = Subscriptions()
        let job = try job(1)
        #expect(subscriptions.matches(job, parents: []).isEmpty)
        subscriptions.add(1, WatchScope(.jobs([1]), interval: 0.25), .one)
        subscriptions.add(2, WatchScope(.all, interval: 1), .one)
        subscriptions.add(3, WatchScope(.all, interval: 0.0001), .one)
        subscriptions.add(4, WatchScope(.jobs([2]), interval: 5), .one)
        let matches = subscriptions.matches(job, parents: [])
        #expect(Set(matches.map(\.interval)) == [250, 1000, 1])
        for (interval, heard) in [(1000, [2]), (250, [1]), (5000, [])] as [(Int, [SubscriptionID])] {
            let topics = matches.filter { $0.interval == interval }.map(\.topic)
            #expect(topics.flatMap(subscriptions.subscribers) == heard)
        }
    }

    // MARK: - Topics

    @Test func subscriptions_areOneTopic_whereTheyHearOfTheSame() throws {
        var subscriptions = Subscriptions()
        let job = try job(1, tags: ["t"])
        let admin = Caller(uid: 9, isAdmin: true)
        for (id, caller) in [(1, .root), (2, admin), (3, .one), (4, .one)] as [(SubscriptionID, Caller)] {
            subscriptions.add(id, WatchScope(.all), caller)
        }
        #expect(subscriptions.matches(job, parents: []).count == 2, "administrators see the same")
        for (id, caller) in [(5, .root), (6, .one), (7, .two)] as [(SubscriptionID, Caller)] {
            subscriptions.add(id, WatchScope(.jobs([1])), caller)
        }
        #expect(subscriptions.matches(job, parents: []).count == 3)
        subscriptions.add(8, WatchScope(.all, interval: 1), .root)
        subscriptions.add(9, WatchScope(.all, includesChildren: true), .root)
        for id in 10...11 as ClosedRange<SubscriptionID> { subscriptions.add(id, WatchScope(.tag("t")), .root) }
        #expect(subscriptions.matches(job, parents: []).count == 6)
        #expect(subscribers(subscriptions, job).count == 11 && subscriptions.count(of: nil) == 11)
    }

    @Test func topic_ends_withItsLastSubscription() throws {
        var subscriptions = Subscriptions()
        let job = try job(1)
        subscriptions.add(1, WatchScope(.all), .root)
        subscriptions.add(2, WatchScope(.all), .root)
        subscriptions.remove(1)
        #expect(subscribers(subscriptions, job) == [2])
        subscriptions.remove(2)
        #expect(subscriptions.matches(job, parents: []).isEmpty)
        subscriptions.add(3, WatchScope(.all), .root)
        #expect(subscribers(subscriptions, job) == [3])
    }

    @Test func laterSubscription_hearsOfARetry_ofWhichAnEarlierOneHeardTheEnd() throws {
        var subscriptions = Subscriptions()
        subscriptions.add(1, WatchScope(.jobs([7, 8])), .one)
        subscriptions.finished(7)
        subscriptions.add(2, WatchScope(.jobs([7, 8])), .one)
        #expect(subscribers(subscriptions, try job(7)) == [2])
        #expect(subscribers(subscriptions, try job(8)) == [1, 2])
        subscriptions.remove(1)
        subscriptions.add(3, WatchScope(.jobs([7, 8])), .one)
        #expect(subscribers(subscriptions, try job(7)) == [2, 3])
        subscriptions.remove(2)
        subscriptions.remove(3)
        #expect(subscribers(subscriptions, try job(8)).isEmpty && subscriptions.shortestInterval == nil)
    }

    @Test func shortestInterval_isThatOfAnyTopic() {
        var subscriptions = Subscriptions()
        for (id, interval) in [(1, 0.5), (2, 0.25), (3, 0.25), (4, 3)] as [(SubscriptionID, Double)] {
            subscriptions.add(id, WatchScope(.tag("\(interval)"), interval: interval), .one)
        }
        #expect(subscriptions.shortestInterval == 250)
        subscriptions.remove(2)
        #expect(subscriptions.shortestInterval == 250)
        subscriptions.remove(3)
        #expect(subscriptions.shortestInterval == 500)
        subscriptions.remove(1)
        #expect(subscriptions.shortestInterval == 3000)
    }

    @Test func interval_isBounded_whateverIsAskedFor() {
        for (asked, milliseconds) in [(0.25, 250), (0, 1), (-5, 1), (1e300, 3_600_000)] as [(Double, Int)] {
            #expect(WatchScope(.all, interval: asked).milliseconds == milliseconds, "\(asked)")
        }
    }

    @Test func version_changes_wheneverOthersHearOfAJob() {
        var subscriptions = Subscriptions()
        var seen: Set<Int> = [subscriptions.version]
        func expect(isNew: Bool, _ location: SourceLocation = #_sourceLocation) {
            let inserted = seen.insert(subscriptions.version).inserted
            #expect(inserted == isNew, sourceLocation: location)
        }
        subscriptions.add(1, WatchScope(.jobs([1, 2])), .one)
        expect(isNew: true)
        subscriptions.finished(1)
        expect(isNew: true)
        subscriptions.remove(1)
        expect(isNew: true)
        for id in 2...3 as ClosedRange<SubscriptionID> { subscriptions.add(id, WatchScope(.all), .one) }
        expect(isNew: true)
        subscriptions.remove(2)
        subscriptions.finished(7)
        expect(isNew: false)
        subscriptions.parentCame()
        expect(isNew: true)
    }

    // MARK: - Siblings

    /// Each notification had a list of its own, of all that watch: 48 KB for each of ten thousand children.
    @Test func subscribersOfSiblings_areOneArray() throws {
        var subscriptions = Subscriptions()
        for id in 1...3 {
            subscriptions.add(
                SubscriptionID(id), WatchScope(.jobs([1, JobID(10 + id)]), includesChildren: true), .one)
        }
        let parent = Ancestor(try job(1))
        func subscribers(of id: JobID) throws -> [SubscriptionID] {
            let matches = subscriptions.coverage(of: try job(id, parent: 1), parents: [parent]).matches
            return subscriptions.subscribers(of: matches)
        }
        let found = try (100..<110).map { try subscribers(of: $0) }
        #expect(found.allSatisfy { $0 == [1, 2, 3] })
        #expect(Set(found.map { $0.withUnsafeBufferPointer(\.baseAddress) }).count == 1)
        subscriptions.add(4, WatchScope(.jobs([1, 11]), includesChildren: true), .one)
        #expect(try subscribers(of: 110) == [1, 4, 2, 3])
        subscriptions.remove(2)
        #expect(try subscribers(of: 111) == [1, 4, 3])
        subscriptions.add(5, WatchScope(.jobs([112])), .one)
        #expect(try subscribers(of: 112) == [1, 4, 3, 5] && subscribers(of: 113) == [1, 4, 3])
        subscriptions.finished(1)
        #expect(try subscribers(of: 114) == [])
    }

    @Test(arguments: 0..<20) func coverage_isWhatMatches_whateverWasAskedBefore(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var subscriptions = Subscriptions()
        let roots = try [job(1, tags: ["s", "t"]), job(2, tags: ["t"]), job(3, owner: 2)]
        var jobs: [(Job, [Ancestor])] = roots.map { ($0, []) }
        for id in 4..<10 as Range<JobID> {
            let root = roots[Int(id) % 3]
            jobs.append((try job(id, owner: root.owner, parent: root.id), [Ancestor(root)]))
        }
        for step in 1..<300 {
            let id = JobID.random(in: 1..<10, using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                let ids = [id, JobID.random(in: 1..<10, using: &random)]
                let scope = WatchScope(.jobs(ids), includesChildren: Bool.random(using: &random))
                subscriptions.add(SubscriptionID(step), scope, .one)
            case 1: subscriptions.add(SubscriptionID(step), WatchScope(.tag("t"), includesChildren: true), .two)
            case 2: subscriptions.add(SubscriptionID(step), WatchScope(.all, includesChildren: true), .root)
            case 3: subscriptions.remove(SubscriptionID.random(in: 1...SubscriptionID(step), using: &random))
            case 4: subscriptions.finished(id)
            default: break
            }
            for _ in 0..<3 {
                let (job, parents) = jobs[Int.random(in: 0..<jobs.count, using: &random)]
                let isWhole = Int.random(in: 0..<4, using: &random) > 0
                let matches = subscriptions.matches(job, parents: parents, isWhole: isWhole)
                #expect(subscriptions.coverage(of: job, parents: parents, isWhole: isWhole).matches == matches)
                #expect(
                    subscriptions.subscribers(of: matches)
                        == matches.flatMap { match in subscriptions.subscribers(of: match.topic) })
            }
        }
    }
}
