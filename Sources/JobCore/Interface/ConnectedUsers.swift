/// Who has connections, as far as it matters for how long one user may keep others waiting.
package enum ConnectedUsers: Sendable, Hashable {
    case none
    case one(UInt32)
    case several

    /// Whether anybody but `user`, who may have no connection, is there.
    package func areOthers(than user: UInt32) -> Bool {
        switch self {
        case .none: false
        case .one(let only): only != user
        case .several: true
        }
    }
}
