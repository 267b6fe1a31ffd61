/// Requests of equal length, made in advance, so that sending any number of them takes one write.
struct RequestBuffer {
    let bytes: [UInt8]
    /// The length of one request.
    let length: Int
    let count: Int

    /// `request` is called with the number of each, from `first` on; all have to have as many digits.
    init(count: Int, from first: Int = 1000, _ request: (String) -> String) {
        let texts = (0..<count).map { index in
            let digits = String(index + first)
            return Array(request(digits).utf8)
        }
        precondition(texts.allSatisfy { $0.count == texts[0].count }, "Requests have one length.")
        self.count = count
        length = texts[0].count
        // Twice, so that whatever comes next lies in one piece.
        bytes = Array((texts + texts).joined())
    }

    /// The bytes of `count` requests from the one with that number on.
    func slice(from first: Int, count: Int, in buffer: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let start = (first % self.count) * length
        return UnsafeRawBufferPointer(rebasing: buffer[start..<start + count * length])
    }
}
