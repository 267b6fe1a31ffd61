import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct QuantitiesTests {
    @Test(arguments: [
        (Int64(0), "0 B"), (-1, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1049, "1.0 kB"), (12_345_678, "12.3 MB"),
        (999_949, "999.9 kB"), (999_950, "1.0 MB"), (999_999, "1.0 MB"), (1_500_000_000, "1.5 GB"),
        (.max, "9.2 EB"),
    ])
    func size_usesDecimalUnits(bytes: Int64, text: String) {
        #expect(Quantities.size(bytes) == text)
    }

    @Test(arguments: [
        (0, "0.0 s"), (0.44, "0.4 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59, "59 s"), (60, "1 min 00 s"),
        (185, "3 min 05 s"), (7380, "2 h 03 min"), (273_600, "3 d 4 h"), (-5, "0.0 s"),
    ])
    func span_usesTheTwoLargestUnits(seconds: Double, text: String) {
        #expect(Quantities.span(seconds) == text)
    }

    @Test(arguments: [(0, "0:00"), (4.2, "0:05"), (65, "1:05"), (3723, "1:02:03"), (-1, "0:00")])
    func clock_roundsUp(seconds: Double, text: String) {
        #expect(Quantities.clock(seconds) == text)
    }

    @Test(arguments: [(0, "0s"), (99, "99s"), (120, "2m"), (7200, "2h"), (86400 * 5, "5d")])
    func age_usesOneUnit(seconds: Double, text: String) {
        #expect(Quantities.age(seconds) == text)
    }

    @Test(arguments: [(0, "0 %"), (0.999, "99 %"), (1, "100 %"), (1.5, "100 %"), (-0.5, "0 %"), (.nan, "0 %")])
    func percent_isWhole_onlyAtTheEnd(fraction: Double, text: String) {
        #expect(Quantities.percent(fraction) == text)
    }

    @Test func rate_takesWhatIsNoNumber() {
        #expect(Quantities.rate(.infinity) == "9.2 EB/s")
        #expect(Quantities.rate(.nan) == "0 B/s")
    }
}
