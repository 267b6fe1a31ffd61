import JobModel

/// Decides which URLs and addresses may be connected to.
struct AccessPolicy: Sendable {
    private let schemes: Set<String>
    private let allowed: [HostPattern]
    private let denied: [HostPattern]
    private let deniedBlocks: [AddressBlock]
    private let allowedBlocks: [AddressBlock]

    init(_ settings: PolicySettings) throws(JobError) {
        schemes = Set(settings.schemes.map { $0.lowercased() })
        let (host, block) = ("host; write a name, *.name or an address", "block; write one as 10.0.0.0/8")
        allowed = try Self.parsed(settings.allowHosts, "policy.allowHosts", host, HostPattern.init)
        denied = try Self.parsed(settings.denyHosts, "policy.denyHosts", host, HostPattern.init)
        deniedBlocks = try Self.parsed(
            PolicySettings.alwaysDenied + settings.denyAddresses, "policy.denyAddresses", block, AddressBlock.init)
        allowedBlocks = try Self.parsed(settings.allowAddresses, "policy.allowAddresses", block, AddressBlock.init)
        if let scheme = schemes.subtracting(["http", "https"]).first {
            throw JobError(.invalid, "\"\(scheme)\" in policy.schemes is unknown; use http and https.")
        }
    }

    static func parsed<Value>(
        _ texts: [String], _ key: String, _ kind: String, _ parse: (String) -> Value?
    ) throws(JobError) -> [Value] {
        try texts.map { (text) throws(JobError) in
            guard let value = parse(text) else { throw JobError(.invalid, "\"\(text)\" in \(key) is not a \(kind).") }
            return value
        }
    }

    func url(_ text: String) throws(JobError) -> RequestURL {
        guard let url = RequestURL(text) else {
            throw JobError(
                .invalid, "\(SourceMessage.quoted(noURL: text)) is not a URL; write one as https://host/path.")
        }
        try check(url, written: text)
        return url
    }

    /// Throws if the scheme, the host or an address as the host is not allowed.
    ///
    /// `text` is the URL as it was written: ``RequestURL`` gives URLs of other schemes the port of http.
    func check(_ url: RequestURL, written text: String? = nil) throws(JobError) {
        guard schemes.contains(url.scheme) else { throw refusal(ofSchemeOf: text ?? url.description) }
        guard !denied.contains(where: { $0.matches(url.host) }),
            allowed.isEmpty || allowed.contains(where: { $0.matches(url.host) })
        else {
            throw JobError(
                .policy, "The host \(url.hostText) is not allowed by the policy; use another, or ask the administrator."
            )
        }
        if case .address(let address) = url.host { try check(address) }
    }

    /// The URL that a `Location` field means in a response from `url`; throws if it is not allowed.
    func url(_ location: String, on url: RequestURL) throws(JobError) -> RequestURL? {
        guard let target = url.resolving(location) else {
            // URLs of other schemes may have another form (`data:,x`, `file:///x`).
            if let scheme = RequestURL.scheme(of: location), !schemes.contains(scheme) {
                throw refusal(ofSchemeOf: location)
            }
            return nil
        }
        try check(target, written: location)
        return target
    }

    private func refusal(ofSchemeOf url: String) -> JobError {
        JobError(
            .policy,
            "The scheme of \(SourceMessage.quoted(noURL: url)) is not allowed; use \(schemes.sorted().joined(separator: " or "))."
        )
    }

    func check(_ address: IPAddress) throws(JobError) {
        let isDenied = address.aliases.contains { alias in
            deniedBlocks.contains { $0.contains(alias) } && !allowedBlocks.contains { $0.contains(alias) }
        }
        guard !isDenied else {
            throw JobError(
                .policy, "The address \(address) is not allowed by the policy; use another server.")
        }
    }
}

/// The hosts that an entry of a list stands for.
struct HostPattern: Sendable {
    private let host: RequestURL.Host
    private let coversSubdomains: Bool

    init?(_ text: String) {
        coversSubdomains = text.hasPrefix("*.")
        let host = coversSubdomains ? String(text.dropFirst(2)) : text
        let isBareVersion6 = host.contains(":") && !host.hasPrefix("[")
        guard let url = RequestURL("http://" + (isBareVersion6 ? "[\(host)]" : host)), url.port == 80,
            url.target == "/", url.credentials == nil
        else { return nil }
        self.host = url.host
    }

    func matches(_ other: RequestURL.Host) -> Bool {
        switch (host, other) {
        case (.address(let address), .address(let other)): other.aliases.contains(address)
        case (.name(let name), .name(let other)): coversSubdomains ? other.hasSuffix("." + name) : other == name
        default: false
        }
    }
}

/// The addresses with a prefix: `169.254.0.0/16`.
struct AddressBlock: Sendable, Hashable {
    private let prefix: IPAddress
    private let mask: SIMD16<UInt8>

    /// Reads a block; a single address without a length. IPv4 addresses have four decimal parts without leading zeros:
    /// `192.168/16` would be 192.0.0.168.
    init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = IPAddress(parts[0]),
            !address.isVersion4 || address.description == parts[0]
        else { return nil }
        let bits = address.isVersion4 ? 32 : 128
        guard let length = parts.count == 1 ? bits : Int(parts[1]), (0...bits).contains(length) else { return nil }
        prefix = address
        var mask = SIMD16<UInt8>()
        for index in mask.indices { mask[index] = 0xFF << UInt8(max(0, min(8, 8 * (index + 1) - length))) }
        self.mask = mask
    }

    /// Whether `address` is in the block; addresses of another family are not.
    func contains(_ address: IPAddress) -> Bool {
        address.isVersion4 == prefix.isVersion4 && (address.value ^ prefix.value) & mask == SIMD16()
    }
}
