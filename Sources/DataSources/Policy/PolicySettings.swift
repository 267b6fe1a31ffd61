/// Where sources may connect to: the configuration's `policy`.
///
/// Addresses are checked before a connection is attempted and once more on the one really connected to, whatever name,
/// redirect or spelling led to them.
public struct PolicySettings: Sendable, Equatable {
    /// Which schemes URLs may have; `http` and `https`.
    public var schemes = ["http", "https"]
    /// Names, `*.name` for all below a name, and addresses; while empty, every host is allowed.
    public var allowHosts: [String] = []
    /// The same forms; a host in both lists is denied.
    public var denyHosts: [String] = []
    /// Blocks such as `10.0.0.0/8`, and addresses; they add to ``alwaysDenied``.
    public var denyAddresses: [String] = []
    /// The same forms: exceptions to all that is denied.
    public var allowAddresses: [String] = []

    /// Link-local, and the addresses outside it where clouds keep their machines' credentials.
    public static let alwaysDenied = [
        "169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "fd20:ce::254", "168.63.129.16", "100.100.100.200",
    ]

    /// This machine and private networks, for ``denyAddresses`` where URLs come from strangers.
    public static let privateNetworks = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1", "fc00::/7",
    ]

    /// What is denied always is denied, and nothing else.
    public init() {}
}
