import JobModel
import Testing

@testable import DataSources

@Suite struct DownloadValuesTests {
    @Test(
        arguments: [
            ("bytes 0-0/1", 0, 1, 1), ("bytes 100-199/1000", 100, 200, 1000), ("Bytes 5-9/*", 5, 10, nil),
            ("bytes 0-9223372036854775806/*", 0, .max, nil),
            ("bytes 0-9223372036854775806/9223372036854775807", 0, .max, .max),
        ] as [(String, Int64, Int64, Int64?)])
    func contentRange_isRead(text: String, start: Int64, end: Int64, total: Int64?) throws {
        let range = try #require(ContentRange(text))
        #expect(range.start == start)
        #expect(range.end == end)
        #expect(range.total == total)
    }

    @Test(arguments: [
        "", "bytes", "bytes */10", "bytes 5-4/10", "bytes 5-10/10", "items 0-1/2", "bytes -1-2/3", "bytes 0-1", "0-1/2",
        "bytes 0-9223372036854775807/*", "bytes 0-9223372036854775807/9223372036854775807", "bytes 0-1/-1",
        "bytes 9223372036854775808-9223372036854775809/*", "bytes +0-+1/2", "bytes 0-1/99999999999999999999",
        "bytes -/*",
    ])
    func contentRange_isNil_whenItContradictsItself(text: String) {
        #expect(ContentRange(text) == nil)
    }

    @Test(
        arguments: [
            (["ETag": "\"a\""], "\"a\""),
            (["ETag": "\"a\"", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], "\"a\""),
            (["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], "Sun, 06 Nov 1994 08:49:37 GMT"),
            (["ETag": "W/\"a\""], nil), (["ETag": "a"], nil), ([:], nil), (["Last-Modified": "some time"], nil),
            (["ETag": "W/\"a\"", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], nil),
            (
                ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:37 GMT"], nil
            ),
            (
                ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:38 GMT"],
                "Sun, 06 Nov 1994 08:49:37 GMT"
            ),
        ] as [([String: String], String?)])
    func validator_isStrongOneOfResponse(fields: [String: String], text: String?) {
        #expect(Validator(HTTPFields(fields.map { ($0.key, $0.value) }))?.text == text)
    }

    @Test func note_countsWhatWasWritten_whileBootLasts() throws {
        var note = DownloadCheckpoint(
            url: "http://a/", validator: Validator(isTag: true, text: "\"a\""), total: 100, directory: "/d", name: "x",
            part: .init(inode: .max, createdAt: 5), bootID: "boot", synced: ByteRanges(0..<30))
        #expect(note.usable(ofSize: 70, boot: "boot").text == "0-70")
        #expect(note.usable(ofSize: 70, boot: "other").text == "0-30")
        #expect(note.usable(ofSize: 20, boot: "other").text == "0-20")
        #expect(note.usable(ofSize: 100, boot: "boot").text == "0-99")
        #expect(DownloadCheckpoint(note.json) == note)
        note.hasHoles = true
        note.written = ByteRanges(20..<40)
        #expect(note.usable(ofSize: 100, boot: "boot").text == "0-40")
        #expect(note.usable(ofSize: 100, boot: "other").text == "0-30")
        #expect(DownloadCheckpoint(note.json) == note)
        note.bootID = ""
        #expect(note.usable(ofSize: 70, boot: "").text == "0-30")
    }

    @Test(arguments: [nil, .null, "x", ["url": "u"]] as [JSON?])
    func note_isNil_whenItIsOfAnotherForm(json: JSON?) {
        #expect(DownloadCheckpoint(json) == nil)
    }

    @Test(arguments: [
        ("tool.tar.gz", "tool-1.tar.gz"), ("tool", "tool-1"), ("a.b.c", "a.b-1.c"), (".bashrc", ".bashrc-1"),
        ("x.", "x-1."), (".tar.gz", ".tar-1.gz"),
    ])
    func alternativeName_keepsEnding(name: String, alternative: String) {
        let path = DownloadPath(
            root: "/r", location: "/r", directories: [], name: name, isOwnDirectory: true, owner: nil)
        #expect(path.alternative(1) == alternative)
    }
}
