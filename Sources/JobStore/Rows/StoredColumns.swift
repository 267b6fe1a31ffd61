package import JobModel

/// A row, or the bytes in one, make no sense.
package struct DamagedRow: Error {
    package init() {}
}

/// The columns of the present row of a statement's result.
package protocol StoredColumns {
    func isNull(_ column: Int32) -> Bool
    func integer(_ column: Int32) -> Int64
    /// Reads the bytes of a blob or text where they are; those of NULL are none.
    func withBytes<Value, Failure>(
        _ column: Int32, _ read: (UnsafeRawBufferPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value
}

extension StoredColumns {
    package func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    package func time(_ column: Int32) -> Timestamp? { optionalInteger(column).map(Timestamp.init(milliseconds:)) }

    package func text(_ column: Int32) -> String? {
        isNull(column) ? nil : withBytes(column) { String(decoding: $0, as: UTF8.self) }
    }

    package func bytes(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : withBytes(column) { Array($0) } }
}

/// Values that may be damaged.
extension StoredColumns {
    package func owner(_ column: Int32) throws(DamagedRow) -> UInt32 {
        guard let owner = UInt32(exactly: integer(column)) else { throw DamagedRow() }
        return owner
    }

    package func state(_ column: Int32) throws(DamagedRow) -> JobState {
        guard let state = JobState(code: integer(column)) else { throw DamagedRow() }
        return state
    }

    package func count(_ column: Int32) throws(DamagedRow) -> Int { try integer(column).asCount() }

    /// The result of `read` for all bytes of a column.
    func decoded<Value>(
        _ column: Int32, _ read: (inout ByteCoder) throws(DamagedRow) -> Value
    ) throws(DamagedRow) -> Value {
        try withBytes(column) { bytes throws(DamagedRow) in
            var coder = ByteCoder(reading: bytes)
            let value = try read(&coder)
            guard coder.isAtEnd else { throw DamagedRow() }
            return value
        }
    }

    package func carried(_ column: Int32) throws(DamagedRow) -> Carried? {
        if isNull(column) { return nil }
        return try decoded(column) { coder throws(DamagedRow) in try coder.carried(nil) }
    }

    package func value(_ column: Int32) throws(DamagedRow) -> StoredValue? {
        switch try carried(column) {
        case nil: nil
        case .success(let value): value
        case .failure: throw DamagedRow()
        }
    }
}

/// Takes the values of parameters; one that is not bound is NULL, as is nil.
package protocol Bindings: AnyObject {
    func bind(_ integer: Int64?, at index: Int32)
    func bind(_ text: String?, at index: Int32)
    func bind(_ bytes: [UInt8]?, at index: Int32)
}

/// What can be bound to a parameter.
package protocol Bindable {
    func bind(to parameters: some Bindings, at index: Int32)
}

extension Bindable where Self: BinaryInteger {
    package func bind(to parameters: some Bindings, at index: Int32) { parameters.bind(Int64(self), at: index) }
}

extension Int64: Bindable {}
extension Int: Bindable {}
extension UInt32: Bindable {}

extension Bool: Bindable {
    package func bind(to parameters: some Bindings, at index: Int32) { parameters.bind(self ? 1 : 0, at: index) }
}

extension Timestamp: Bindable {
    package func bind(to parameters: some Bindings, at index: Int32) { parameters.bind(milliseconds, at: index) }
}

extension String: Bindable {
    package func bind(to parameters: some Bindings, at index: Int32) { parameters.bind(self, at: index) }
}

extension [UInt8]: Bindable {
    package func bind(to parameters: some Bindings, at index: Int32) { parameters.bind(self, at: index) }
}
