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

    @Test(arguments: [("69", "2069"), ("70", "1970"), ("99", "1999"), ("00", "2000"), ("68", "2068"), ("1969", "1969")])
    func twoDigits_areAYearFrom1970To2069(year: String, whole: String) {
        let form = year.count == 2 ? "Sunday, 06-Nov-\(year) 08:49:37 GMT" : "Sun, 06 Nov \(year) 08:49:37 GMT"
        #expect(HTTPDate.time(form)?.description == "\(whole)-11-06T08:49:37.000Z")
    }

    @Test(arguments: [
        "", "yesterday", "Sun, 06 Nov 1994", "Sun, 32 Nov 1994 08:49:37 GMT", "784111777",
        "Sun, 06 Nov 99999999999999999999 08:49:37 GMT", "Sun, 06 Nov 9223372036854775807 08:49:37 GMT",
        "Sun, 9223372036854775807 Nov 1994 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov -1994 08:49:37 GMT", "Sunday, 06--Nov-94 08:49:37 GMT",
        "Sun, 06 Nov 1994 99:99:99 GMT", "Sunday, 06-Nov-70000 08:49:37 GMT",
    ])
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
}
