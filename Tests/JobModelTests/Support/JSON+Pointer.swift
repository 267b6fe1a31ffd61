@testable import JobModel

extension JSON {
    /// The value at `pointer`, or nil.
    subscript(pointer: JSONPointer) -> JSON? {
        var search = PointerSearch()
        return search.value(at: pointer, in: self)
    }
}
