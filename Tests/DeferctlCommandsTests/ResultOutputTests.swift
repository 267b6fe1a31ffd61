import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct ResultOutputTests {
    @Test(
        arguments: [
            (["status": 200, "size": 2, "body": "hi"], true), (["status": 200, "size": 9, "spilled": true], true),
            (["status": 200, "size": 9], false), (["body": "hi"], false), ("text", false), (nil, false),
        ] as [(JSON, Bool)])
    func hasBody_isTrue_ofResultsOfRequests(result: JSON, hasBody: Bool) {
        #expect(ResultOutput.hasBody(result) == hasBody)
    }

    @Test func inlineBody_isDecoded_orReadFromTheDaemon() {
        #expect(ResultOutput.inlineBody(of: ["body": "hi"]) == Array("hi".utf8))
        #expect(ResultOutput.inlineBody(of: ["body": "/wA=", "encoding": "base64"]) == [0xFF, 0])
        #expect(ResultOutput.inlineBody(of: ["spilled": true, "body": "h"]) == nil)
    }
}
