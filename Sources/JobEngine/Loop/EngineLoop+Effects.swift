import DataSources
import DeferredKit
import Dispatch
import JobModel
import JobCore
import Logging
import Synchronization

/// Carries out what the core wants done, once its round is committed.
extension EngineLoop {
    func carryOut(_ effect: CoreEffect) {
        switch effect {
        case .answer(let id, let answer): self.answer(id, answer)
        case .start(let order):
            // The fate of its round may have been told in another life.
            if order.run.life == store.life { begin(order) }
        case .proceed(let id, let host, let connections): proceed(id, host, connections)
        case .yield(let id): forget(id)
        case .makeChildren(let id, let index): makeChildren(id, from: index)
        case .cancel(let id, let keepsPart): cancel(id, keepsPart: keepsPart)
        case .setRate(let id, let rate): runs[id]?.rates.job = rate
        case .tellHook(let job, let owner): engine.hooks.tell(job, of: owner, engine)
        case .notify(let ids, let change):
            deliver(.event(JobEvent(change, inlineResult: engine.limits.inlineResult)), to: ids)
        case .gone(let job, let ids): deliver(.gone(job), to: ids ?? Array(subscribers.keys))
        case .missed(let ids): deliver(.missed, to: ids)
        case .endedWithoutRun(let job): engine.board.wakeReaders(of: job)
        case .list(let job, let list):
            engine.board.put(list, of: job)
            if store.sharing?.hasOthers == true { listsToTell[job] = list }
        case .prepare(let preparation):
            prepare(for: preparation.key.owner) { .prepared(preparation, $0.job(of: preparation)) }
        case .removeFiles(let work): engine.removeParts(work)
        case .measure(let job, let output):
            prepare { engine in
                let output = engine.blobs.measured(output)
                // The directory of another daemon may have it, which archives it when it starts again.
                guard output.size > 0 || !engine.blobs.isArchived else { return nil }
                try? engine.blobs.archive(output)
                return .measured(job, output)
            }
        case .unlink(let blobs): engine.blobs.remove(blobs)
        case .queues(let queues):
            engine.published.withLock { $0.queues = queues }
            setRates(of: queues)
        case .readZones(let names):
            prepare { .zones($0.rules(of: names)) }
        case .log(let entry): engine.logger.log(entry)
        }
    }

    func answer(_ id: RequestID, _ answer: CoreAnswer) { requests.removeValue(forKey: id)?(answer) }

    func deliver(_ update: JobUpdate, to ids: [SubscriptionID]) {
        for id in ids { subscribers[id]?(update) }
    }

    // MARK: - Files

    /// Makes an input on a thread for files.
    private func prepare(for owner: UInt32? = nil, _ make: @escaping @Sendable (Engine) -> CoreInput?) {
        engine.library.threads(for: owner ?? 0).start { [engine] in
            if let input = make(engine) { engine.inbox.put(.input(input), of: owner) }
        }
    }
}

extension Engine {
    /// How long the engine waits for files to be removed: a file system may not answer.
    private static let patience = DispatchTimeInterval.seconds(1)

    /// Removes the files that a piece of work names, and tells the core once they are gone or that has taken too long.
    fileprivate func removeParts(_ work: WorkRow) {
        let end = Promise<Void, Never>()
        end.deferred.upon { [inbox] _ in inbox.put(.input(.cleaned(work.id)), of: work.owner) }
        DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + Self.patience) { end.succeed(()) }
        // Owned by nothing: it ends by itself, whether the engine still waits for it or not.
        Task(executorPreference: library.executor) { [library] in
            for checkpoint in JSON(stored: work.payload).array ?? [] {
                await library.discard(checkpoint, of: work.owner)
            }
            end.succeed(())
        }
    }

    /// The rules of those of these time zones whose files can be read.
    fileprivate func rules(of zones: [String]) -> [String: ZoneRules] {
        var rules: [String: ZoneRules] = [:]
        for zone in zones {
            do throws(SpecError) { rules[zone] = try ZoneFiles.rules(of: zone) } catch {
                logger.warning("Schedules in the zone \(zone) wait, as its rules cannot be read. \(error.reason)")
            }
        }
        return rules
    }

    /// The job of a schedule, made of its spec.
    fileprivate func job(of preparation: SchedulePreparation) -> Result<NewJob, ProtocolError> {
        let key = preparation.key
        do throws(StoreError) {
            guard let spec = try reader.schedule(key)?.spec else {
                return .failure(ProtocolError(.notFound, "There is no schedule \"\(key.name)\"."))
            }
            return Result { () throws(ProtocolError) in
                try admission.scheduled(
                    JSON(stored: spec), by: key, at: preparation.time, boot: preparation.boot,
                    hasKey: preparation.request == nil)
            }
        } catch {
            return .failure(ProtocolError(.storage, error.message))
        }
    }
}
