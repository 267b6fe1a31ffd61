import JobModel

/// Who waits for the end of which jobs.
struct JobWaits {
    struct Wait {
        let number: Int
        /// In the order asked for, doubles included.
        let ids: [JobID]
        let caller: Caller
        let done: @Sendable (Result<[JSON], EngineError>) -> Void
        fileprivate var open: Set<JobID>
    }

    private var waits: [Int: Wait] = [:]
    private var byJob: [JobID: [Int]] = [:]
    private var last = 0

    mutating func add(
        _ ids: [JobID], _ caller: Caller, _ done: @escaping @Sendable (Result<[JSON], EngineError>) -> Void
    ) -> Int {
        last += 1
        let open = Set(ids)
        waits[last] = Wait(number: last, ids: ids, caller: caller, done: done, open: open)
        for id in open { byJob[id, default: []].append(last) }
        return last
    }

    func isOpen(_ number: Int) -> Bool { waits[number] != nil }

    /// A job is over; gives the waits that have nothing left to wait for. Only wait `number` is told, if one is named.
    mutating func ended(_ id: JobID, of number: Int? = nil) -> [Wait] {
        let told = number.map { [$0] } ?? byJob[id] ?? []
        var over: [Wait] = []
        for number in told {
            waits[number]?.open.remove(id)
            drop(number, id)
            if let wait = waits[number], wait.open.isEmpty {
                waits[number] = nil
                over.append(wait)
            }
        }
        return over
    }

    /// Takes a wait out that is given up or out of time.
    mutating func expired(_ number: Int) -> Wait? {
        guard let wait = waits.removeValue(forKey: number) else { return nil }
        for id in wait.open { drop(number, id) }
        return wait
    }

    private mutating func drop(_ number: Int, _ id: JobID) {
        byJob[id]?.removeAll { $0 == number }
        if byJob[id]?.isEmpty == true { byJob[id] = nil }
    }
}
