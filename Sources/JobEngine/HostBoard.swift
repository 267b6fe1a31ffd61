/// How many transfers run from each host, and which hosts asked to be left alone.
///
/// Jobs that make lists have a lane of their own, as if they asked one host: so a bounded number of lists is open, and
/// those that wait for it hold up nobody else. So do timers, which wait in memory without a slot of their queue.
struct HostBoard {
    /// The lane of jobs that make lists; no host is called so.
    static let lists = " lists"
    /// The lane of timers.
    static let timers = " timers"

    private let limit: Int
    private let listLimit: Int
    private let timerLimit: Int
    private var running: [String: Int] = [:]
    private var held: Set<String> = []

    init(limit: Int, lists: Int, timers: Int) {
        self.limit = limit
        listLimit = lists
        timerLimit = timers
    }

    func isOpen(_ host: String) -> Bool {
        let limit =
            switch host {
            case Self.lists: listLimit
            case Self.timers: timerLimit
            default: limit
            }
        return running[host, default: 0] < limit && !held.contains(host)
    }

    mutating func enter(_ host: String) {
        running[host, default: 0] += 1
    }

    mutating func leave(_ host: String) {
        guard let count = running[host] else { return }
        running[host] = count > 1 ? count - 1 : nil
    }

    mutating func hold(_ host: String) {
        held.insert(host)
    }

    mutating func release(_ host: String) {
        held.remove(host)
    }
}
