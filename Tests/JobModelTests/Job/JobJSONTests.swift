import JobModel
import Testing

/// The job object of the protocol.
@Suite struct JobJSONTests {
    private static let everyMember = [
        "job", "state", "source", "then", "queue", "priority", "key", "tags", "label", "owner", "parent", "children",
        "createdAt", "notBefore", "startedAt", "finishedAt", "waitingFor", "attempt", "link", "links", "progress",
        "result", "error",
        "outcomes",
    ]

    private static let failure = JobError(.checksum, "Wrong.")

    private static func outcome(_ link: Int, _ error: JobError? = nil) -> LinkOutcome {
        LinkOutcome(link: link, error: error, startedAt: .after(1), finishedAt: .after(2), attempts: 1)
    }

    @Test func object_hasOnlyWhatHasAValue() throws {
        let job = try ExampleJob.chain()
        #expect(
            job.json().object?.names == [
                "job", "state", "source", "then", "queue", "priority", "owner", "createdAt", "waitingFor",
                "attempt", "link", "links", "outcomes",
            ])
        #expect(
            job.json().description
                == #"{"job":7,"state":"queued","source":{"type":"value","value":1},"then":[],"queue":"default","#
                + #""priority":0,"owner":1000,"createdAt":"\#(Timestamp.after(0))","waitingFor":"slot","attempt":0,"link":0,"links":0,"#
                + #""outcomes":[]}"#)
        for text in [
            #"{"source":{"type":"error"}}"#, #"{"source":{"type":"error"},"then":null,"tags":null,"key":null}"#,
        ] {
            let bare = ExampleJob(spec: try .parsing(text)).json()
            #expect(bare.object?.names.contains { ["then", "tags", "key"].contains($0) } == false)
        }
    }

    @Test func object_hasEveryMember_inTheOrderOfTheProtocol() throws {
        let spec = try JobSpec.chain(
            #"{"then":{"return":1}}"#, #""delay":60,"key":"k","tags":["a"],"label":"l","priority":-5,"queue":"q""#)
        var job = ExampleJob(id: 1 << 53, spec: spec, state: .scheduled, parent: 3)
        job.children = 2
        job.notBefore = .after(60)
        job.startedAt = .after(1)
        job.finishedAt = .after(2)
        let json = job.json(progress: Progress(completed: 1, total: nil))
        #expect(json.object?.names == Self.everyMember.filter { !["result", "error"].contains($0) })
        #expect(json["job"]?.description == "9007199254740992")
        #expect(json["parent"] == 3 && json["children"] == 2 && json["owner"] == 1000 && json["links"] == 1)
        #expect(json["notBefore"] == .string(Timestamp.after(60).description))
        #expect(json["startedAt"] == .string(Timestamp.after(1).description))
        #expect(
            json["progress"]
                == ["completed": 1, "total": nil, "unit": "bytes", "fraction": nil, "rate": nil, "eta": nil])
    }

    @Test(arguments: ["null", "1.0", "[]", #"{"error":1}"#])
    func result_isThere_onEverySucceededJob(_ result: String) throws {
        var job = try ExampleJob.chain("", "", .succeeded)
        job.carried = .value(try JSON(parsing: result))
        let json = job.json()
        #expect(json["state"] == "succeeded" && json["error"] == nil)
        #expect(json["result"]?.description == result)
        #expect(json.object?.names.suffix(2) == ["result", "outcomes"])
    }

    @Test(arguments: JobState.allCases)
    func resultAndError_areThere_onJobsThatEndedSo(_ state: JobState) throws {
        var job = try ExampleJob.chain("", "", state)
        if state != .succeeded {
            job.carried = .failure(Self.failure)
            #expect((job.json()["error"]?["kind"] == "checksum") == state.isTerminal)
        }
        job.carried = .value("between")
        #expect((job.json()["result"] == "between") == (state == .succeeded))
        #expect(job.json()["error"] == nil)
    }

    @Test func error_isThatOfTheLastAttempt_whileItWaitsForTheNext() throws {
        var job = try ExampleJob.chain("", "", .scheduled)
        job.lastFailure = JobError(.timeout, "Slow.", retryable: true)
        job.attempt = 1
        #expect(job.json()["error"]?["kind"] == "timeout" && job.json()["attempt"] == 1)
    }

    @Test func outcomes_areThoseOfTheLinksThatRan() throws {
        var job = try ExampleJob.chain(#"{"fail":{"return":1}},{"finally":{"return":1}}"#)
        job.outcomes = [Self.outcome(0), Self.outcome(2, Self.failure)]
        let times = #""startedAt":"\#(Timestamp.after(1))","finishedAt":"\#(Timestamp.after(2))","attempts":1"#
        #expect(
            job.json()["outcomes"]?[0] == (try JSON(parsing: #"{"link":0,"ok":true,\#(times)}"#)))
        #expect(
            job.json()["outcomes"]?[1]?.object?.names == ["link", "ok", "error", "startedAt", "finishedAt", "attempts"])
        #expect(job.json()["outcomes"]?[1]?["link"] == 2 && job.json()["outcomes"]?[2] == nil)
    }

    @Test func credentials_areMasked_whereverTheyStand() throws {
        let url = "https://user:secret@example.org/"
        let text =
            #"{"source":{"type":"url","url":"\#(url)","headers":{"Authorization":"secret","cookie":"secret"}},"#
            + #""then":[{"finally":{"source":{"type":"download","url":"https://{{job/label}}:secret@h/","path":"p","#
            + #""mirrors":["\#(url)"],"headers":{"Proxy-Authorization":"secret"}}}},{"fail":{"throw":{"message":"\#(url)"}}}],"#
            + #""key":"\#(url)","label":"\#(url)","tags":["\#(url)"]}"#
        for state in [JobState.scheduled, .failed] {
            var job = ExampleJob(spec: try .parsing(text), state: state)
            job.lastFailure = JobError(.http, "Cannot load \(url).", retryable: true)
            job.carried = .failure(JobError(.http, "Cannot load \(url)."))
            job.outcomes = [Self.outcome(0, JobError(.invalid, url))]
            #expect(job.json()["error"] != nil && !job.json().description.contains("secret"))
            #expect(job.json()["source"]?["url"] == "https://***@example.org/")
        }
    }

    @Test(arguments: [
        (
            Progress(completed: 5, total: 10),
            #"{"completed":5,"total":10,"unit":"bytes","fraction":0.5,"rate":null,"eta":null}"#
        ),
        (
            Progress(completed: 1, total: 3, unit: .jobs, rate: 0.4),
            #"{"completed":1,"total":3,"unit":"jobs","fraction":0.3333,"rate":0,"eta":5}"#
        ),
        (
            Progress(completed: 5, total: nil, rate: 1234.5),
            #"{"completed":5,"total":null,"unit":"bytes","fraction":null,"rate":1235,"eta":null}"#
        ),
        (
            Progress(completed: 0, total: 0),
            #"{"completed":0,"total":0,"unit":"bytes","fraction":1,"rate":null,"eta":null}"#
        ),
        (
            Progress(completed: 11, total: 10, rate: 1),
            #"{"completed":11,"total":10,"unit":"bytes","fraction":1,"rate":1,"eta":0}"#
        ),
        (
            Progress(completed: 0, total: 10, rate: 1e-9),
            #"{"completed":0,"total":10,"unit":"bytes","fraction":0,"rate":0,"eta":null}"#
        ),
        (
            Progress(completed: 0, total: 10, rate: 0),
            #"{"completed":0,"total":10,"unit":"bytes","fraction":0,"rate":0,"eta":null}"#
        ),
        (
            Progress(completed: 0, total: .max, rate: 1e-300),
            #"{"completed":0,"total":9223372036854775807,"unit":"bytes","fraction":0,"rate":0,"eta":null}"#
        ),
    ])
    func progress_isNull_whereItIsUnknown(_ progress: Progress, _ text: String) {
        #expect(progress.json.description == text)
    }
}
