extension String {
    /// The most combining characters in a row in a string that a client or a server wrote.
    ///
    /// Swift compares and hashes strings in a normal form, and the time to sort the characters in a row grows with the
    /// square of their number: the names in a line of 32 KB took 40 seconds.
    package static let mostCombining = 256

    /// Whether it has more combining characters in a row than ``mostCombining``.
    package var combinesTooMuch: Bool {
        // Each takes at least two bytes, none of which is ASCII.
        guard utf8.count > 2 * Self.mostCombining, utf16.count < utf8.count else { return false }
        var inRow = 0
        for scalar in unicodeScalars {
            let combines = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass != .notReordered
            inRow = combines ? inRow + 1 : 0
            if inRow > Self.mostCombining { return true }
        }
        return false
    }
}
