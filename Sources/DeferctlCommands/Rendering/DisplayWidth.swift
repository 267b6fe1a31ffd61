extension String {
    /// The columns that the text takes on a terminal.
    var columns: Int { reduce(0) { $0 + $1.columns } }

    /// The text cut to at most `width` columns; what was cut off is marked by `mark`.
    func cut(to width: Int, mark: String = "…") -> String {
        guard columns > width else { return self }
        let mark = mark.columns <= width ? mark : ""
        var room = width - mark.columns
        let kept = prefix { character in
            room -= character.columns
            return room >= 0
        }
        return kept + mark
    }

    /// The text with spaces behind it, up to `width` columns.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: Swift.max(0, width - columns))
    }

    /// The text with spaces before it, up to `width` columns.
    func aligned(to width: Int) -> String {
        String(repeating: " ", count: Swift.max(0, width - columns)) + self
    }
}

extension Character {
    /// The columns that the character takes: 2 of the wide scripts and of pictures, 0 of a mark that stands alone.
    fileprivate var columns: Int {
        guard let first = unicodeScalars.first else { return 0 }
        if unicodeScalars.contains(where: { $0.properties.isEmojiPresentation || $0.value == 0xFE0F }) { return 2 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        switch first.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1B000...0x1B2FF, 0x20000...0x3FFFD:
            return 2
        default: return 1
        }
    }
}
