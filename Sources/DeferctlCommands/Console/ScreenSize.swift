import Glibc

/// The columns and rows of a terminal.
struct ScreenSize: Sendable, Equatable {
    var columns: Int
    var rows: Int

    init(columns: Int, rows: Int) {
        self.columns = columns
        self.rows = rows
    }

    /// The size of the terminal behind `output` at this moment; 80 by 24 where it does not say.
    init(of output: FileOutput) {
        var size = winsize()
        let isKnown = ioctl(output.descriptor, UInt(TIOCGWINSZ), &size) == 0
        columns = isKnown && size.ws_col > 0 ? Int(size.ws_col) : 80
        rows = isKnown && size.ws_row > 0 ? Int(size.ws_row) : 24
    }
}
