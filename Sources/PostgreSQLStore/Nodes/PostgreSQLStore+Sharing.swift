package import JobModel

extension PostgreSQLStore {
    /// Stores what the node is after a reload. Any thread may call it.
    package func describe(_ node: NodeDescription) throws(StoreError) {
        let connection = try PostgreSQLConnector(settings, errors: .write).connect()
        try connection.begin()
        try connection.send(
            "UPDATE deferd_lives SET programs = $2, configuration = $3 WHERE node = $1 AND NOT is_over",
            [node.name, node.programs.json.description, node.configuration])
        try connection.commit()
    }
}

extension PostgreSQLStore: SharedStore {
    package var sharing: (any SharedStore)? { self }

    package var pollPause: Int64 { 500 }

    package var isLeaseEnding: Bool { Lives.now() - lastBeat > Int64(settings.lease * 1000) * 3 / 4 }

    package var otherPrograms: [String: [String]] { lives.programs }

    package func giveUpLife() { (isLifeOver, hasGivenUp) = (true, true) }

    package var hasOthers: Bool { lives.hasOthers }

    package func listen(_ hear: @escaping @Sendable (String) -> Void) {
        // A pooler does not pass on what a session hears.
        if !isPooled { listener.start(hear) }
    }

    /// Milliseconds between two announcements.
    private static let announcementPause: Int64 = 20

    package func announce() -> Int64? {
        guard hasNews, connection != nil else { return nil }
        let left = lastAnnouncement + Self.announcementPause - Lives.now()
        guard left <= 0 else { return left }
        (hasNews, lastAnnouncement) = (false, Lives.now())
        tell([""])
        return nil
    }

    package func tell(_ texts: some Sequence<String>) {
        // Within a round it would hold a lock of the whole server until the disk has synced, and keep that from being synced.
        if transaction.isOpen { return untold += texts }
        guard let connection else { return }
        for text in texts {
            // Its failure shows in the next round.
            try? connection.send(
                "SELECT set_config('synchronous_commit', 'off', true), pg_notify('deferd', $1)",
                [listener.prefix + text])
            try? connection.synchronize()
        }
    }
}
