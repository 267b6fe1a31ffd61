import JobCore
import JobModel
import Testing

/// Times of schedules at which no job can be stored.
@Suite struct ScheduleTests {
    @Test(arguments: [(.none, []), (.last, [240]), (.all, [60, 120, 180, 240])] as [(ScheduleCatchUp, [Double])])
    func times_areMissed_whileThereIsNoRoom(_ catchUp: ScheduleCatchUp, _ caughtUp: [Double]) throws {
        let driver = try CoreDriver()
        let key = ScheduleKey(owner: 1, name: "s")
        let start = driver.now.wall
        let schedule = Schedule(key: key, timing: .every(60_000), catchUp: catchUp, setAt: start, specSize: 2)
        driver.ask(.setSchedule(NewSchedule(schedule, spec: Array("{}".utf8))))
        driver.send(.room(shortage: "The disk is full."))
        for _ in 0..<4 { driver.advance(by: 60) }
        driver.advance(by: 40)
        #expect(driver.preparations.isEmpty && !driver.core.wantsTick(at: driver.now))
        driver.send(.room(shortage: nil))
        driver.advance(by: 0.001)
        var handled = 0
        var times: [Double] = []
        while handled < driver.preparations.count {
            let preparation = driver.preparations[handled]
            handled += 1
            let spec: JSON = [
                "source": ["type": "value", "value": 1], "key": .string(key.jobKey(at: preparation.time)),
            ]
            var reader = JobSpecReader.ofStored()
            let made = try reader.scheduled(spec, by: key, at: preparation.time, hasKey: true)
            let job = NewJob(
                terms: NewJob.Terms(made, host: nil), document: .spec(made.text ?? spec.utf8), digest: 1,
                uploads: false)
            if handled == 1 {
                // The room ends while the job is made, so it is made again.
                driver.send(.room(shortage: "The disk is full."), .prepared(preparation, .success(job)))
                driver.send(.room(shortage: nil))
            } else {
                driver.send(.prepared(preparation, .success(job)))
                times.append(preparation.time.seconds(since: start))
            }
            driver.advance(by: 0.001)
        }
        #expect(times == caughtUp)
    }
}

extension CoreDriver {
    fileprivate var preparations: [SchedulePreparation] {
        effects.compactMap { effect in if case .prepare(let preparation) = effect { preparation } else { nil } }
    }
}
