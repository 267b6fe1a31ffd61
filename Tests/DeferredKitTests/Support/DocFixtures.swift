import DeferredKit

// The declarations that the examples of the documentation use.

struct NotThere: Error {
    let name: String
}

struct ParseError: Error, Equatable {
    let text: String
}

let everything = ["list": "page", "page/first": "A page", "page": "A page with a long title", "name": "deferd"]

@Sendable func load(_ name: String) -> Deferred<String, any Error> {
    guard let text = everything[name] else { return .failed(NotThere(name: name)) }
    return .succeeded(text)
}

func answer() -> Deferred<Int, any Error> {
    .succeeded(42)
}

/// Something that can be stopped.
final class Connection: Sendable {
    private let journal = Journal<String>()
    var isClosed: Bool { !journal.entries.isEmpty }
    func close() { journal.note("closed") }
    func stop() { journal.note("stopped") }
    func show(_ text: String) { journal.note(text) }
}
