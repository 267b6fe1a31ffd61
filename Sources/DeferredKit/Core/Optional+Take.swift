extension Optional {
    /// Leaves nil and returns what was there.
    mutating func take() -> Self {
        let value = self
        self = nil
        return value
    }
}
