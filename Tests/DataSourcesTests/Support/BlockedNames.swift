import DataSources
import Dispatch
import Synchronization

/// A resolver that answers `127.0.0.1` to every name, but to those that end in `.dead` nothing until it is told to.
final class BlockedNames: Sendable {
    private let gate = DispatchSemaphore(value: 0)
    private let begun = AsyncStream.makeStream(of: String.self)
    private let state = Mutex((names: [String](), running: 0, most: 0))

    /// The dead names that were looked up.
    var lookedUp: [String] { state.withLock { $0.names } }
    /// How many dead names were looked up at a time at most.
    var most: Int { state.withLock { $0.most } }

    var names: Workbench.Names {
        Workbench.Names { name in
            guard name.hasSuffix(".dead") else { return .success([IPAddress(bytes: [127, 0, 0, 1])]) }
            self.state.withLock { state in
                state.names.append(name)
                state.running += 1
                state.most = max(state.most, state.running)
            }
            self.begun.continuation.yield(name)
            self.gate.wait()
            // For the next one.
            self.gate.signal()
            self.state.withLock { $0.running -= 1 }
            return .failure(NameResolver.Failure(reason: "nobody answers"))
        }
    }

    /// Waits until `count` more dead names are looked up.
    func lookUp(_ count: Int = 1) async {
        var rest = count
        for await _ in begun.stream {
            rest -= 1
            if rest == 0 { return }
        }
    }

    /// Lets all lookups fail, those that are under way and later ones.
    func answer() { gate.signal() }
}
