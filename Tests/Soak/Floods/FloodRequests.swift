import JobModel

/// The lines that floods consist of.
enum FloodRequests {
    static let info = #"{"jsonrpc":"2.0","id":1,"method":"server.info"}"#
    static let submission =
        #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"source":{"type":"value","value":1},"delay":86400}}"#
    static let list = #"{"jsonrpc":"2.0","id":1,"method":"job.list","params":{"limit":1000}}"#
    static let longLine =
        #"{"jsonrpc":"2.0","id":1,"method":"server.info","params":["# + String(repeating: "1,", count: 500_000) + "1]}"

    static let largeSubmission =
        #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"source":{"type":"value","value":""#
        + String(repeating: "x", count: 100_000) + #""},"delay":86400}}"#

    static let longSpec =
        #"{"jsonrpc":"2.0","id":1,"method":"job.explain","params":"#
        + longList(endingWith: #"{"source":{"type":"value","value":0}}"#) + "}"

    /// A spec of half a MiB that takes long to check; with more the line would have too many values.
    static func longList(endingWith job: String) -> String {
        #"{"source":{"type":"list","jobs":["#
            + String(
                repeating:
                    #"{"source":{"type":"value","value":[0,0]},"then":[{"fail":{"source":{"type":"value","value":0}}}]},"#,
                count: 6_000) + job + "]}}"
    }

    /// Each link expands the value of 100 KB to one of 800 KB.
    static let expansions =
        #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"tags":["flood"],"source":{"type":"value","value":["#
        + Array(repeating: "\"" + String(repeating: "x", count: 100) + "\"", count: 1_000).joined(separator: ",")
        + #"]},"then":["#
        + ([
            #"{"then":{"return":["#
                + Array(repeating: #""{{input}}""#, count: 8).joined(separator: ",") + "]}}"
        ]
        + Array(
            repeating: #"{"then":{"return":["#
                + Array(repeating: #""{{input/0}}""#, count: 8).joined(separator: ",") + "]}}", count: 40))
        .joined(separator: ",") + "]}}"

    /// Children of which each fills in many expressions.
    static let children =
        #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"tags":["flood"],"source":{"type":"each","in":["#
        + (0..<1_000).map(String.init).joined(separator: ",")
        + #"],"job":{"delay":86400,"source":{"type":"value","value":["#
        + Array(repeating: #""{{item}}""#, count: 10_000).joined(separator: ",") + "]}}}}}"

    /// Many children of one line.
    static let longLists =
        #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"tags":["flood"],"source":{"type":"list","jobs":["#
        + Array(repeating: #"{"source":{"type":"value","value":0}}"#, count: 3_000).joined(separator: ",") + "]}}}"

    /// The requests that clients send repeatedly, as far as they are accepted, without reading answers, and the number
    /// of their connections: answers of half a MiB, watches, and the beginning of a line.
    static let unread = [
        (list + "\n", 60),
        (#"{"jsonrpc":"2.0","id":1,"method":"job.watch","params":{"all":true,"interval":0.01}}"# + "\n", 8),
        (String(repeating: "[", count: 900_000), 40),
    ]
}
