/// Where sources may connect to: the configuration's `policy`.
package struct PolicySettings: Sendable, Equatable {
    package var schemes = ["http", "https"]
    /// Names, `*.name` for all below a name, and addresses; while empty, every host is allowed.
    package var allowHosts: [String] = []
    /// The same forms; a host in both lists is denied.
    package var denyHosts: [String] = []
    /// Blocks such as `10.0.0.0/8`. The default is link-local, where clouds keep their machines' credentials.
    package var denyAddresses = ["169.254.0.0/16", "fe80::/10"]

    package init() {}
}
