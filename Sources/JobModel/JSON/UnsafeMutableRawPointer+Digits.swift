extension UnsafeMutableRawPointer {
    /// The maximum number of bytes of a whole number.
    package static var mostDigits: Int { 20 }

    /// Writes the digits of a number that is not negative, at most ``mostDigits`` bytes; returns their end.
    package func writeDigits(of number: Int) -> UnsafeMutableRawPointer {
        var length = 1
        var rest = number
        while rest >= 10 {
            rest /= 10
            length += 1
        }
        rest = number
        var index = length
        repeat {
            index -= 1
            let (tens, digit) = rest.quotientAndRemainder(dividingBy: 10)
            storeBytes(of: UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit), toByteOffset: index, as: UInt8.self)
            rest = tens
        } while index > 0
        return self + length
    }
}
