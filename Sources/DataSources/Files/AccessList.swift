import Glibc

/// Who may do what with a file beyond its mode: a POSIX access control list, as acl(5) describes it.
///
/// It is read and written by descriptor, in the form that the kernel gives it (`<linux/posix_acl_xattr.h>`): libacl has no
/// call for a directory's default list but by name.
package struct AccessList: Sendable, Hashable {
    /// What may be done: the bits of a mode's last digit.
    package struct Rights: OptionSet, Sendable, Hashable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) { self.rawValue = rawValue }

        package static let execute = Rights(rawValue: 1)
        package static let write = Rights(rawValue: 2)
        package static let read = Rights(rawValue: 4)
        package static let all: Rights = [.read, .write, .execute]
    }

    package struct Entry: Sendable, Hashable {
        package enum Tag: UInt16, Sendable {
            case owner = 0x01
            case user = 0x02
            case owningGroup = 0x04
            case group = 0x08
            case mask = 0x10
            case other = 0x20
        }

        package let tag: Tag
        package let rights: Rights
        /// The uid or gid of a named user or group.
        package let id: UInt32
    }

    private static let version: UInt32 = 2
    private static let nobody = UInt32.max

    package let entries: [Entry]

    /// A list that gives the file's owner and `users` these rights, and nobody else any.
    package init(_ rights: Rights, for users: Set<UInt32>) {
        entries =
            [Entry(tag: .owner, rights: rights, id: Self.nobody)]
            + users.sorted().map { Entry(tag: .user, rights: rights, id: $0) }
            + [
                Entry(tag: .owningGroup, rights: [], id: Self.nobody),
                Entry(tag: .mask, rights: rights, id: Self.nobody),
                Entry(tag: .other, rights: [], id: Self.nobody),
            ]
    }

    /// The list that the kernel wrote; nil for one of another form.
    init?(_ bytes: ArraySlice<UInt8>) {
        func number(_ offset: Int, _ count: Int) -> UInt32 {
            (0..<count).reduce(0) { $0 | UInt32(bytes[bytes.startIndex + offset + $1]) << (8 * UInt32($1)) }
        }
        guard bytes.count >= 4, bytes.count % 8 == 4, number(0, 4) == Self.version else { return nil }
        var entries: [Entry] = []
        for offset in stride(from: 4, to: bytes.count, by: 8) {
            guard let tag = Entry.Tag(rawValue: UInt16(truncatingIfNeeded: number(offset, 2))) else { return nil }
            entries.append(
                Entry(
                    tag: tag, rights: Rights(rawValue: UInt16(truncatingIfNeeded: number(offset + 2, 2))),
                    id: number(offset + 4, 4)))
        }
        self.entries = entries
    }

    /// As the kernel reads it.
    var bytes: [UInt8] {
        func little(_ number: some FixedWidthInteger) -> [UInt8] {
            withUnsafeBytes(of: number.littleEndian, Array.init)
        }
        return little(Self.version)
            + entries.flatMap { little($0.tag.rawValue) + little($0.rights.rawValue) + little($0.id) }
    }

    /// What a user who is in `groups` may do with a file of `owner` and `group`, by the rules of acl(5).
    func permits(_ wanted: Rights, user: UInt32, groups: () -> Set<UInt32>, owner: UInt32, group: UInt32) -> Bool {
        func first(_ tag: Entry.Tag) -> Rights? { entries.first { $0.tag == tag }?.rights }
        if user == owner { return first(.owner)?.isSuperset(of: wanted) == true }
        let mask = first(.mask) ?? .all
        if let named = entries.first(where: { $0.tag == .user && $0.id == user }) {
            return named.rights.intersection(mask).isSuperset(of: wanted)
        }
        let groups = groups()
        let ofGroups = entries.filter {
            ($0.tag == .owningGroup && groups.contains(group)) || ($0.tag == .group && groups.contains($0.id))
        }
        // Whoever is in one of the groups is not among the others, whatever it gives.
        guard ofGroups.isEmpty else {
            return ofGroups.contains { $0.rights.intersection(mask).isSuperset(of: wanted) }
        }
        return first(.other)?.isSuperset(of: wanted) == true
    }

    /// The list that a mode stands for.
    init(mode: UInt32) {
        func rights(_ shift: UInt32) -> Rights { Rights(rawValue: UInt16(mode >> shift & 7)) }
        entries = [
            Entry(tag: .owner, rights: rights(6), id: Self.nobody),
            Entry(tag: .owningGroup, rights: rights(3), id: Self.nobody),
            Entry(tag: .other, rights: rights(0), id: Self.nobody),
        ]
    }

    /// Whether it names `user` with all of these rights.
    func names(_ user: UInt32, with rights: Rights) -> Bool {
        entries.contains { $0.tag == .user && $0.id == user && $0.rights.isSuperset(of: rights) }
    }
}
