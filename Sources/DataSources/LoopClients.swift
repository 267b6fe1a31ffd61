import AsyncHTTPClient
import Logging
import NIOCore

/// HTTP clients, one for each event loop: a transfer's connection lives on its own loop, and is used again there.
///
/// One client for all loops would take a connection of any loop, and closes those that it was asked to make on one.
struct LoopClients: Sendable {
    private let clients: [ObjectIdentifier: HTTPClient]

    init(_ group: any EventLoopGroup, _ configuration: HTTPClient.Configuration) {
        var clients: [ObjectIdentifier: HTTPClient] = [:]
        for loop in group.makeIterator() {
            clients[ObjectIdentifier(loop)] = HTTPClient(
                eventLoopGroupProvider: .shared(loop), configuration: configuration)
        }
        self.clients = clients
    }

    /// The client whose connections live on `loop`, one of the group's.
    subscript(loop: any EventLoop) -> HTTPClient {
        guard let client = clients[ObjectIdentifier(loop)] else {
            preconditionFailure("Transfers run on the loops that there are clients for.")
        }
        return client
    }

    func shutdown(_ logger: Logger) async {
        for client in clients.values {
            do {
                try await client.shutdown()
            } catch {
                logger.warning("The HTTP client did not shut down cleanly.", metadata: ["error": "\(error)"])
            }
        }
    }
}
