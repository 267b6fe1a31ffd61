@testable import JobModel

extension JSON {
    /// The value at `pointer`, or nil where there is none.
    func value(at pointer: JSONPointer) -> JSON? {
        var search = PointerSearch()
        return search.value(at: pointer, in: self)
    }
}
