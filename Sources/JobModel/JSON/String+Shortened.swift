extension StringProtocol {
    /// The text without white space at its ends.
    package var trimmed: String {
        String(drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
    }
}

extension String {
    /// The maximum number of input bytes that an error repeats.
    package static let mostEchoed = 256

    /// The text as an error repeats it, shortened if it is long.
    package var echoed: String { shortened(to: Self.mostEchoed) }

    /// Returns the string, shortened to at most `limit` bytes of JSON text without quotes.
    package func shortened(to limit: Int) -> String {
        // Most are too short to need measuring: no byte takes more than six.
        if utf8.count <= limit / 6 || JSONWriter.size(of: self) - 2 <= limit { return self }
        let ending = "…"
        var room = limit - ending.utf8.count
        let kept = unicodeScalars.prefix { scalar in
            room -= JSONWriter.size(of: String(scalar)) - 2
            return room >= 0
        }
        return String(kept) + ending
    }

    /// The word that was probably meant, if one is near.
    package func nearest(among words: some Sequence<String>) -> String? {
        // Longer text is near no word. Comparing bytes takes no normal form.
        guard utf8.count <= 64 else { return nil }
        let text = Array(utf8)
        // The number of letters to insert or remove.
        let distances = words.map { (word: $0, count: text.difference(from: Array($0.utf8)).count) }
        return distances.min { $0.count < $1.count }.flatMap { $0.count <= max(2, $0.word.count / 2) ? $0.word : nil }
    }
}
