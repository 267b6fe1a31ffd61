import DataSources
import DeferredKit
import Dispatch
import JobCore
package import JobModel

/// What nodes tell each other besides what is stored: the progress of their runs, and the output of running programs when a
/// client of another node asks for it. It may be lost, and is of no use later.
extension EngineLoop {
    /// Milliseconds between two reports to other nodes.
    private static let reportPause: Int64 = 1000
    /// The records of a message, which PostgreSQL limits to 8,000 bytes, and the most messages at once; more is lost.
    private static let most = (records: 40, messages: 200)
    /// Seconds for which output of another node is waited for.
    private static let outputPatience = 2.0

    /// Tells other nodes of new progress, if it is time to.
    func tellOthers(_ sharing: any SharedStore) {
        let now = now.steady
        guard sharing.hasOthers, now >= nextReport else { return }
        nextReport = now.saturatingAdding(Self.reportPause)
        var records = exchange(&listsToTell, with: [:]).values.map(\.record)
        for run in runs.values {
            let reports = engine.board.reports(of: run.live.run, of: run.live.job)
            guard let record = reports.record(of: run.live.job), record != run.told else { continue }
            records.append(record)
            run.told = record
        }
        let messages = stride(from: 0, to: records.count, by: Self.most.records).prefix(Self.most.messages)
        sharing.tell(messages.map { JSON.array(Array(records[$0...].prefix(Self.most.records))).description })
    }

    /// Takes in what another node tells; an empty text means that the store has news.
    func hear(_ text: String) {
        guard !text.isEmpty else { return nextPoll = .min }
        let message = JSON(stored: Array(text.utf8))
        for record in message.array ?? [] { engine.board.hear(record) }
        if let run = RunID(message["wanted"]) { give(run) }
        if let run = RunID(message["given"]) {
            for wait in outputWaits.removeValue(forKey: run) ?? [] { wait.succeed(()) }
        }
    }

    /// Stores for other nodes what a program has written.
    private func give(_ id: RunID) {
        guard let run = runs[id] else { return }
        run.hasGivenOutput = true
        engine.library.threads(for: 0).start { [engine] in
            let output = engine.blobs.measured(id.output())
            try? engine.blobs.archive(output, as: id.outputSoFar(size: output.size), keepsFile: true)
            engine.inbox.put(.task { $0.store.sharing?.tell([(["given": id.json] as JSON).description]) }, of: nil)
        }
    }

    /// Asks the node of a run to store what its program has written.
    fileprivate func want(_ run: RunID, _ promise: Promise<Void, Never>) {
        if outputWaits[run] == nil { store.sharing?.tell([(["wanted": run.json] as JSON).description]) }
        outputWaits[run, default: []].append(promise)
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.outputPatience) { [engine] in
            if promise.succeed(()) { engine.inbox.put(.task { $0.outputWaits[run] = nil }, of: nil) }
        }
    }
}

extension Engine {
    /// Whether a run is one of this node.
    package func runs(_ run: RunID) -> Bool { run.life == blobs.life }

    /// Waits until the output of a run at another node can be read here, two seconds at most.
    package func fetchOutput(of run: RunID, for owner: UInt32) async {
        let promise = Promise<Void, Never>()
        inbox.put(.task { $0.want(run, promise) }, of: owner)
        await promise.deferred.get()
    }
}

extension RunID {
    fileprivate init?(_ json: JSON?) {
        guard let life = json?[0]?.int, let number = json?[1]?.int else { return nil }
        self.init(life: Int64(life), number: Int64(number))
    }

    fileprivate var json: JSON { [life.json, number.json] }
}

extension JobProgress {
    /// What other nodes are told of a job's run; nil before there is something to tell.
    fileprivate func record(of job: JobID) -> JSON? {
        guard let run, latest != nil || output != nil else { return nil }
        return [
            job.json, run.json, latest?.completed.json ?? .null, latest?.total?.json ?? .null,
            latest?.unit.rawValue.json ?? .null, output?.json ?? .null,
        ]
    }
}

extension ListRow {
    fileprivate var record: JSON { [job.json, id.json, total.json, ended.json, bytes.json] }
}

extension Board {
    /// Takes in what another node tells of a run or a list.
    fileprivate func hear(_ record: JSON) {
        func number(_ index: Int) -> Int64? { record[index]?.int.flatMap { $0 < 0 ? nil : Int64($0) } }
        guard let job = number(0) else { return }
        if let list = number(1), let total = number(2), let ended = number(3), let bytes = number(4) {
            var row = ListRow(
                job: job, id: list, link: 0, phase: .open, mode: .settled, concurrency: nil, total: Int(total),
                template: nil)
            (row.ended, row.bytes) = (Int(ended), bytes)
            return hear(row)
        }
        guard let run = RunID(record[1]) else { return }
        hear(run, of: job)
        update(run, of: job) { progress in
            if let unit = record[4]?.string, Progress.Unit.isWellFormed(unit) { progress.unit = .init(rawValue: unit) }
            if let completed = number(2) { progress.report(ProgressUpdate(completed: completed, total: number(3))) }
            progress.output = number(5) ?? progress.output
        }
    }
}
