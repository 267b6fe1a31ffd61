/// Where sources may connect to: the configuration's `policy`.
///
/// The addresses of a name are checked, and only checked ones are connected to, whatever name, redirect or spelling led
/// to them.
public struct PolicySettings: Sendable, Equatable {
    /// The allowed schemes; `http` and `https`.
    public var schemes = ["http", "https"]
    /// Allowed hosts: names, `*.name` for all names below one, and addresses; an empty list allows every host.
    public var allowHosts: [String] = []
    /// Denied hosts in the same forms; a host in both lists is denied.
    public var denyHosts: [String] = []
    /// Denied addresses in addition to ``alwaysDenied``: addresses, and blocks such as `10.0.0.0/8`.
    public var denyAddresses: [String] = []
    /// Exceptions to all denied addresses, in the same forms.
    public var allowAddresses: [String] = []

    /// Link-local addresses, and others at which clouds serve the credentials of their machines.
    public static let alwaysDenied = [
        "169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "fd20:ce::254", "168.63.129.16", "100.100.100.200",
    ]

    /// The addresses of this machine.
    static let loopback = ["127.0.0.0/8", "::1", "0.0.0.0", "::"]

    /// This machine and private networks: for ``denyAddresses`` if URLs come from strangers.
    public static let privateNetworks = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1", "fc00::/7",
    ]

    /// Denies only ``alwaysDenied``.
    public init() {}
}
