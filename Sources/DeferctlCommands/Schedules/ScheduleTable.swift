import JobModel

/// Schedules as rows of a table.
enum ScheduleTable {
    static func lines(
        _ schedules: [JSON], width: Int? = nil, mark: String = "…", palette: Palette = .none
    ) -> [String] {
        let owners = Set(schedules.compactMap { $0["owner"]?.int })
        let hasOwners = owners.count > 1
        var table = Table(
            (hasOwners ? [Table.Column("OWNER", isNumber: true)] : []) + [
                Table.Column("SCHEDULE", cut: .end, least: 8), Table.Column("TIMES", cut: .middle, least: 9),
                Table.Column("ZONE", cut: .end, least: 6, rank: 2), Table.Column("NEXT (UTC)"),
                Table.Column("LAST", rank: 1),
                Table.Column("JOB", isNumber: true, rank: 3), Table.Column("SUBMITTED", isNumber: true, rank: 4),
                Table.Column("SKIPPED", isNumber: true, rank: 5),
            ])
        for schedule in schedules {
            let last = schedule["last"]
            let state = last?["state"]?.string ?? ""
            let next: StyledText =
                if schedule["suspended"]?.bool == true {
                    StyledText("suspended", TextStyle(state: "suspended"))
                } else {
                    StyledText(time(schedule["next"]) ?? "never")
                }
            table.append(
                (hasOwners ? [StyledText(number(schedule["owner"]))] : []) + [
                    StyledText(schedule["schedule"]?.string?.sanitized ?? "?"), StyledText(times(schedule)),
                    StyledText(schedule["zone"]?.string?.sanitized ?? ""), next,
                    StyledText(state.sanitized, TextStyle(state: state)), StyledText(number(last?["job"])),
                    StyledText(number(schedule["submitted"])), StyledText(number(schedule["skipped"])),
                ])
        }
        return table.lines(width: width, mark: mark, palette: palette)
    }

    /// When it submits, in a few words.
    static func times(_ schedule: JSON) -> String {
        if let calendar = schedule["calendar"]?.string { return calendar.sanitized }
        guard let every = schedule["every"]?.double else { return "?" }
        // No more than was asked for: "1 s", not "1.0 s", and "1 min", not "1 min 00 s".
        if let whole = Int(exactly: every), whole < 60 { return "every \(whole) s" }
        let span = Quantities.span(every)
        let empty = [" 00 s", " 00 min", " 0 h"].first { span.hasSuffix($0) } ?? ""
        return "every \(span.dropLast(empty.count))"
    }

    private static func number(_ json: JSON?) -> String { json?.int.map(String.init) ?? "" }

    private static func time(_ json: JSON?) -> String? {
        json?.string.flatMap(Timestamp.init(rfc3339:)).map(Quantities.time)
    }
}
