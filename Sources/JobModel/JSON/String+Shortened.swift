extension String {
    /// The most bytes of its input that an error repeats.
    package static let mostEchoed = 256

    /// What an error repeats of what it was given: its beginning, where it is long.
    package var echoed: String { shortened(to: Self.mostEchoed) }

    /// The string, or as much of its beginning as takes at most `limit` bytes as JSON text, quotes not counted.
    package func shortened(to limit: Int) -> String {
        // Most are far too short to need a second look: no byte takes more than six.
        if utf8.count <= limit / 6 || JSONWriter.size(of: self) - 2 <= limit { return self }
        let ending = "…"
        var room = limit - ending.utf8.count
        var kept = unicodeScalars.startIndex
        while kept < unicodeScalars.endIndex {
            let size = JSONWriter.size(of: unicodeScalars[kept])
            guard size <= room else { break }
            room -= size
            kept = unicodeScalars.index(after: kept)
        }
        return String(unicodeScalars[..<kept]) + ending
    }
}
