import ArgumentParser

/// Bytes a second as the command line writes them: `500000`, `500k`, `2M`.
struct ByteRate: ExpressibleByArgument, Equatable {
    let bytes: Int

    init?(argument: String) {
        let units: [Character: Double] = ["k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9]
        let factor = argument.last.flatMap { units[$0] }
        guard let number = Double(factor == nil ? argument : String(argument.dropLast())) else { return nil }
        let bytes = (number * (factor ?? 1)).rounded()
        guard bytes >= 1, bytes <= 1e15 else { return nil }
        self.bytes = Int(bytes)
    }
}
