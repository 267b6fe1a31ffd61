import JobClient
import JobModel

/// Downloads a URL with deferd: `ExampleClient URL PATH`. Shows progress, and prints where the file is.
@main struct Client {
    static func main() async throws {
        let (url, path) = (CommandLine.arguments[1], CommandLine.arguments[2])
        var spec = JobClient.Spec(.download(url, to: path, exists: "replace"))
        spec.label = "Client.swift"
        spec = spec.then(.value(["file": "{{input/path}}", "bytes": "{{input/size}}"]))
        // Without a path, it connects to your own daemon or the system's.
        try await JobClient.withConnection { client in
            let job = try await client.submit(spec, watch: true)
            for try await event in client.notifications where event.job == job.id {
                if case .progress(let progress, _, _, _) = event.change {
                    print(progress.completed, "of", progress.total ?? 0, progress.unit)
                }
                guard case .state(let snapshot) = event.change, snapshot.isFinished else { continue }
                print(snapshot.result?["file"]?.string ?? snapshot.error?["message"]?.string ?? snapshot.state)
                return
            }
        }
    }
}
