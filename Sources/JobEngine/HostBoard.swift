/// How many transfers run from each host, and which hosts asked to be left alone.
///
/// Jobs that make lists have a lane of their own, as if they asked one host: so a bounded number of lists is open, and
/// those that wait for it hold up nobody else.
struct HostBoard {
    /// The lane of jobs that make lists; no host is called so.
    static let lists = " lists"

    private let limit: Int
    private let listLimit: Int
    private var running: [String: Int] = [:]
    private var held: Set<String> = []

    init(limit: Int, lists: Int) {
        self.limit = limit
        listLimit = lists
    }

    func isOpen(_ host: String) -> Bool {
        running[host, default: 0] < (host == Self.lists ? listLimit : limit) && !held.contains(host)
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
