/// Where sources may connect to: the configuration's `policy`.
package struct PolicySettings: Sendable, Equatable {
    package var schemes = ["http", "https"]
    /// Names, `*.name` for all below a name, and addresses; while empty, every host is allowed.
    package var allowHosts: [String] = []
    /// The same forms; a host in both lists is denied.
    package var denyHosts: [String] = []
    /// Blocks such as `10.0.0.0/8`, and addresses; they add to ``alwaysDenied``.
    package var denyAddresses: [String] = []
    /// The same forms: exceptions to all that is denied.
    package var allowAddresses: [String] = []

    /// Link-local, and the addresses outside it where clouds keep their machines' credentials.
    package static let alwaysDenied = [
        "169.254.0.0/16", "fe80::/10", "fd00:ec2::254", "168.63.129.16", "100.100.100.200",
    ]

    package init() {}
}
