import JobModel

/// What a list came to, worked out from what its children came to.
extension Oracle {
    func checkList(_ outcome: LinkOutcome, _ step: Step, _ job: KnownJob, _ new: Job, _ world: World) {
        guard case .source(let source) = step.action, let children = job.children[outcome.link] else { return }
        if let error = outcome.error, error.kind != .list {
            let isWell = world.store.health == .well && world.clock.elapsed - world.store.lastUnwell > 600_000_000_000
            if error.kind == .storage, isWell {
                world.violate(2, "the list of job \(job.id) fails for its storage, which works: \(error.message)")
            }
            return
        }
        let mode = source["mode"]?.string ?? "settled"
        let rows = children.sorted { ($0.row.parent?.index ?? 0) < ($1.row.parent?.index ?? 0) }.map(\.row)
        if let open = rows.first(where: { !$0.state.isTerminal }) {
            return world.violate(2, "the list of job \(job.id) is over, and its child \(open.id) is \(open.state)")
        }
        checked.listOutcomes += 1
        let succeeded = rows.count { $0.state == .succeeded }
        switch (mode, outcome.error) {
        case ("settled", nil):
            guard let value = value(of: outcome, new) else { return }
            let given = value.array?.map { $0["ok"]?.bool } ?? []
            if given != rows.map({ $0.carried?.isSuccess ?? false }) {
                world.violate(2, "the list of job \(job.id) tells other outcomes than its children had")
            }
        case ("all", nil):
            if succeeded != rows.count { world.violate(2, "the list of job \(job.id) succeeded, and a child did not") }
            guard let value = value(of: outcome, new) else { return }
            if value.array?.count != rows.count { world.violate(2, "the list of job \(job.id) lost a child") }
        case ("all", let error?):
            guard succeeded < rows.count else {
                return world.violate(2, "the list of job \(job.id) failed, and no child did")
            }
            if let index = error.cause?.index, !rows.indices.contains(index) || rows[index].state == .succeeded {
                world.violate(2, "the list of job \(job.id) names child \(index) as its cause, which did not fail")
            }
        case ("first", nil):
            guard let value = value(of: outcome, new) else { return }
            guard let index = value["index"]?.int, rows.indices.contains(index), rows[index].state == .succeeded else {
                return world.violate(2, "the race of job \(job.id) was won by a child that did not succeed")
            }
        case ("first", _):
            if succeeded > 0 { world.violate(2, "the race of job \(job.id) failed, and a child succeeded") }
        default: break
        }
    }

    /// The value of the outcome, where what is stored still has it.
    private func value(of outcome: LinkOutcome, _ new: Job) -> JSON? {
        guard new.outcomes.last?.link == outcome.link, outcome.link == 0 || !new.spec.links[outcome.link - 1].isFinally,
            case .success(let value) = new.carried
        else { return nil }
        return value
    }
}
