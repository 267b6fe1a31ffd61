import JobModel
import Testing

@testable import DataSources

@Suite struct HTTPDateTests {
    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    ])
    func time_isUnderstood_inEveryForm(text: String) {
        #expect(HTTPDate.time(text)?.description == "1994-11-06T08:49:37.000Z")
    }

    @Test(arguments: ["", "yesterday", "Sun, 06 Nov 1994", "Sun, 32 Nov 1994 08:49:37 GMT", "784111777"])
    func time_isNil_whenTextIsNoDate(text: String) {
        #expect(HTTPDate.time(text) == nil)
    }

    @Test(arguments: [
        ("1994-11-06T08:49:37.999Z", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("1969-12-31T23:59:59Z", "Wed, 31 Dec 1969 23:59:59 GMT"),
        ("2024-02-29T12:00:00+02:00", "Thu, 29 Feb 2024 10:00:00 GMT"),
    ])
    func text_isDateOfRFC9110(time: String, text: String) throws {
        #expect(Timestamp(rfc3339: time).map(HTTPDate.text) == text)
    }

    @Test func retryAfter_isSecondsFromNow() throws {
        let now = try #require(Timestamp(rfc3339: "1994-11-06T08:49:30Z"))
        #expect(RetryAfter.seconds("120", now: now) == 120)
        #expect(RetryAfter.seconds("Sun, 06 Nov 1994 08:49:37 GMT", now: now) == 7)
        #expect(RetryAfter.seconds("Sun, 06 Nov 1994 08:49:00 GMT", now: now) == 0)
        #expect(RetryAfter.seconds("soon", now: now) == nil)
        #expect(RetryAfter.seconds("-1", now: now) == nil)
    }
}
