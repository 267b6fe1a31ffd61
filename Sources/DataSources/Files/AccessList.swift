import Glibc

/// A POSIX access control list, as acl(5) describes it.
///
/// Read and written by descriptor in the kernel's form (`<linux/posix_acl_xattr.h>`), as libacl cannot do that for the
/// default list of a directory.
package struct AccessList: Sendable, Hashable {
    /// The bits of a mode's last digit.
    package struct Rights: OptionSet, Sendable, Hashable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) { self.rawValue = rawValue }

        package static let execute = Rights(rawValue: 1)
        package static let write = Rights(rawValue: 2)
        package static let read = Rights(rawValue: 4)
        package static let all: Rights = [.read, .write, .execute]
    }

    private struct Entry: Sendable, Hashable {
        enum Tag: UInt16, Sendable {
            case owner = 0x01
            case user = 0x02
            case owningGroup = 0x04
            case group = 0x08
            case mask = 0x10
            case other = 0x20
        }

        let tag: Tag
        let rights: Rights
        /// The uid or gid of a named user or group; all bits are set for other tags.
        var id = UInt32.max
    }

    private static let version: UInt32 = 2

    private let entries: [Entry]

    /// A list that gives these rights to the file's owner and to `users`, and none to anyone else.
    package init(_ rights: Rights, for users: Set<UInt32>) {
        entries =
            [Entry(tag: .owner, rights: rights)]
            + users.sorted().map { Entry(tag: .user, rights: rights, id: $0) }
            + [Entry(tag: .owningGroup, rights: []), Entry(tag: .mask, rights: rights), Entry(tag: .other, rights: [])]
    }

    /// The list that stands for a mode.
    init(mode: UInt32) {
        func rights(_ shift: UInt32) -> Rights { Rights(rawValue: UInt16(mode >> shift & 7)) }
        entries = [
            Entry(tag: .owner, rights: rights(6)), Entry(tag: .owningGroup, rights: rights(3)),
            Entry(tag: .other, rights: rights(0)),
        ]
    }

    /// Reads the kernel's form; nil for any other form.
    init?(_ bytes: ArraySlice<UInt8>) {
        func number<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Number {
            bytes.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self)) }
        }
        guard bytes.count % 8 == 4, number(0) == Self.version else { return nil }
        var entries: [Entry] = []
        for offset in stride(from: 4, to: bytes.count, by: 8) {
            guard let tag = Entry.Tag(rawValue: number(offset)) else { return nil }
            entries.append(Entry(tag: tag, rights: Rights(rawValue: number(offset + 2)), id: number(offset + 4)))
        }
        self.entries = entries
    }

    var bytes: [UInt8] {
        func little(_ number: some FixedWidthInteger) -> [UInt8] {
            withUnsafeBytes(of: number.littleEndian, Array.init)
        }
        return little(Self.version)
            + entries.flatMap { little($0.tag.rawValue) + little($0.rights.rawValue) + little($0.id) }
    }

    /// Whether a user in `groups` may do this with a file of `owner` and `group`, by the rules of acl(5).
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
        // The rights of others do not apply to members of a listed group.
        guard ofGroups.isEmpty else {
            return ofGroups.contains { $0.rights.intersection(mask).isSuperset(of: wanted) }
        }
        return first(.other)?.isSuperset(of: wanted) == true
    }

    func names(_ user: UInt32, with rights: Rights) -> Bool {
        entries.contains { $0.tag == .user && $0.id == user && $0.rights.isSuperset(of: rights) }
    }
}
