/// Bounds on one client's requests, named like the keys of the configuration's `limits`.
package struct JobLimits: Sendable, Equatable {
    /// Bytes per request line.
    package var line = 1 << 20
    /// Bytes buffered for a client that does not read.
    package var outbound = 8 << 20
    package var connections = 1024
    package var connectionsPerUser = 256
    /// Unanswered requests per connection.
    package var inFlight = 1024
    /// Scheduled, held and queued jobs of all users.
    package var queuedJobs = 10_000_000
    package var queuedJobsPerUser = 1_000_000
    /// Bytes of a body included in a result; a larger one is read with `job.result`.
    package var inlineResult = 64 << 10
    /// Bytes of a body, as sent and as decoded.
    package var body = 64 << 20
    /// Bytes kept of the output of one attempt of a program.
    package var output = 16 << 20
    /// Memory for the documents being parsed, of all users together, in bytes: texts and values.
    package var documents = 64 << 20
    /// Memory for one user's requests, unread answers and documents, in bytes.
    package var memoryPerUser = 64 << 20
    /// Bytes of a response's headers.
    package var header = 64 << 10
    package var schedulesPerUser = 1000
    /// Children per list.
    package var children = 10_000
    package var links = 100
    /// Levels of nested lists.
    package var depth = 16
    /// Redirects followed per transfer; its key is `http.redirects`.
    package var redirects = 10
    /// The retries of idempotent requests whose spec names none; its key is `http.retry`.
    package var retry = RetryPolicy.standard
    /// Levels of nested values in one line.
    package static let nesting = 64

    /// The maximum memory for the values of one document, in bytes.
    package var documentValues: Int { min(max(body, 1 << 20), Self.mostValues) }
    /// The maximum memory for the values of one request line, in bytes.
    package var lineValues: Int { min(max(line, 128 << 10).saturatingMultiplied(by: 8), Self.mostValues) }

    /// The maximum memory for a value composed of results, once it is read from the store: that of one document's
    /// values and of the template around it, which came in one line.
    package var composedValues: Int { min(documentValues.saturatingAdding(lineValues), Self.mostValues) }

    /// The maximum memory for the values of one result or spec, whatever the configuration says.
    /// Larger ones are never read from the store again.
    package static let mostValues = 512 << 20

    package init() {}

    /// The limits as `server.info` shows them.
    package var json: JSON {
        [
            "line": JSON(line), "outbound": JSON(outbound), "connections": JSON(connections),
            "connectionsPerUser": JSON(connectionsPerUser), "inFlight": JSON(inFlight),
            "queuedJobs": JSON(queuedJobs), "queuedJobsPerUser": JSON(queuedJobsPerUser),
            "schedulesPerUser": JSON(schedulesPerUser),
            "inlineResult": JSON(inlineResult), "body": JSON(body), "output": JSON(output), "header": JSON(header),
            "documents": JSON(documents), "memoryPerUser": JSON(memoryPerUser), "children": JSON(children),
            "links": JSON(links), "depth": JSON(depth), "nesting": JSON(Self.nesting), "redirects": JSON(redirects),
        ]
    }
}
