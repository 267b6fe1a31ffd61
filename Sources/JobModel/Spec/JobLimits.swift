/// The bounds on what one client may ask for; their names are the keys of the configuration's `limits`.
package struct JobLimits: Sendable, Equatable {
    /// Bytes of one request line.
    package var line = 1 << 20
    /// Bytes that may wait for a client that does not read.
    package var outbound = 8 << 20
    package var connections = 1024
    package var connectionsPerUser = 256
    /// Requests of one connection without an answer.
    package var inFlight = 1024
    /// Scheduled and queued jobs of all users.
    package var queuedJobs = 10_000_000
    package var queuedJobsPerUser = 1_000_000
    /// Bytes of a body that stands in a result; a larger one is read with `job.result`.
    package var inlineResult = 64 << 10
    /// Bytes of a body, as sent and as decoded.
    package var body = 64 << 20
    /// Bytes of memory for documents that are being parsed, of all users together: their texts and their values.
    package var documents = 64 << 20
    /// Bytes of memory that one user's requests and unread answers take, and that user's documents.
    package var memoryPerUser = 64 << 20
    /// Bytes of a response's headers.
    package var header = 64 << 10
    /// Schedules of one user.
    package var schedulesPerUser = 1000
    /// Children of one list.
    package var children = 10_000
    /// Links of one job.
    package var links = 100
    /// Levels of lists within lists.
    package var depth = 16
    /// Redirects that are followed in one transfer; the only one whose key is another (`http.redirects`).
    package var redirects = 10
    /// Levels of values in one line.
    package static let nesting = 64

    /// What the values of one document take in memory at most.
    package var documentValues: Int { min(max(body, 1 << 20), Self.mostValues) }
    /// What the values of one request line take in memory at most.
    package var lineValues: Int { min(max(line, 128 << 10).saturatingMultiplied(by: 8), Self.mostValues) }

    /// What a value that is put together of results takes in memory at most, once it is read from the store: as much as
    /// the values of one document with the template around it, which came in one line.
    package var composedValues: Int {
        min(documentValues.saturatingAdding(lineValues), Self.mostValues)
    }

    /// What the values of one result or spec take in memory at most, whatever the configuration says: one of more is never
    /// read from the store again.
    package static let mostValues = 512 << 20

    package init() {}

    /// The limits as `server.info` shows them.
    package var json: JSON {
        [
            "line": JSON(line), "outbound": JSON(outbound), "connections": JSON(connections),
            "connectionsPerUser": JSON(connectionsPerUser), "inFlight": JSON(inFlight),
            "queuedJobs": JSON(queuedJobs), "queuedJobsPerUser": JSON(queuedJobsPerUser),
            "schedulesPerUser": JSON(schedulesPerUser),
            "inlineResult": JSON(inlineResult), "body": JSON(body), "header": JSON(header),
            "documents": JSON(documents), "memoryPerUser": JSON(memoryPerUser), "children": JSON(children),
            "links": JSON(links), "depth": JSON(depth), "nesting": JSON(Self.nesting), "redirects": JSON(redirects),
        ]
    }
}
