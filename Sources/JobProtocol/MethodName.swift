/// The methods of protocol version 1.
package enum MethodName: String, Sendable, CaseIterable {
    case serverInfo = "server.info"
    case serverStats = "server.stats"
    case jobSubmit = "job.submit"
    case jobGet = "job.get"
    case jobList = "job.list"
    case jobWait = "job.wait"
    case jobWatch = "job.watch"
    case jobUnwatch = "job.unwatch"
    case jobCancel = "job.cancel"
    case jobRetry = "job.retry"
    case jobRemove = "job.remove"
    case jobResult = "job.result"
    case jobExplain = "job.explain"
    case queueList = "queue.list"
    case queueSet = "queue.set"
}
