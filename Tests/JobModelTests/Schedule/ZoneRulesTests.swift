import Foundation
import Testing

@testable import JobModel

struct ZoneRulesTests {
    private func footer(_ text: String) throws -> ZoneFooter { try ZoneFooter(text) }

    @Test(arguments: [
        "", "C", "CE-1", "CET", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5.0,M13.5.0/3",
        "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J60,J300", "CET-1CEST,59,300", "CET-1CEST,M3.5.0,M10.5.0/3x", "<+03-3",
        "CET-27", "CET-1:60", "CET-1CEST,M3.5.0/168,M10.5.0", "CET-1\u{661}", "CET-9999999999999999999",
    ])
    func footer_isRefused_whereItMakesNoSense(_ text: String) {
        #expect(throws: ZoneRules.Flaw.self) { try footer(text) }
    }

    @Test func footer_saysHowTheYearsGoOn() throws {
        let zone = ZoneRules(changes: [], offsets: [0], footer: try footer("CET-1CEST,M3.5.0,M10.5.0/3"))
        let summer = zone.period(at: 1_784_000_000)
        #expect(summer.offset == 7200)
        #expect(Timestamp(milliseconds: summer.start * 1000).description == "2026-03-29T01:00:00.000Z")
        #expect(Timestamp(milliseconds: summer.end * 1000).description == "2026-10-25T01:00:00.000Z")
        #expect(zone.period(at: summer.end).offset == 3600)
        #expect(try footer("<-03>3").standard == -10_800)
        #expect(try footer("IST-1GMT0,M10.5.0,M3.5.0/1").summer?.offset == 0)
        #expect(try footer("<-02>2<-01>,M3.5.0/-1,M10.5.0/0").summer?.begin.time == -3600)
    }

    @Test func file_isRefused_whereItIsDamaged() throws {
        let whole = try zoneFile("Europe/Berlin")
        _ = try ZoneRules(tzif: whole)
        for count in 0..<whole.count {
            #expect(throws: ZoneRules.Flaw.self) { try ZoneRules(tzif: Array(whole[..<count])) }
        }
        #expect(throws: ZoneRules.Flaw.self) { try ZoneRules(tzif: whole + [UInt8](repeating: 0, count: 70_000)) }
    }

    @Test func file_neverTraps_whateverItHolds() throws {
        let whole = try zoneFile("Europe/Berlin")
        var generator = SystemRandomNumberGenerator()
        let calendar = try CalendarExpression("30 2 * * *")
        for _ in 0..<3_000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            guard let zone = try? ZoneRules(tzif: bytes) else { continue }
            for time: Int64 in [.min, -1, 0, 1_790_000_000_000, 253_402_300_000_000, .max] {
                _ = calendar.next(after: Timestamp(milliseconds: time), in: zone)
            }
        }
    }
}

/// The bytes of a zone's file of this machine.
func zoneFile(_ name: String) throws -> [UInt8] {
    let bytes = FileManager.default.contents(atPath: "/usr/share/zoneinfo/\(name)")
    return Array(try #require(bytes, "tzdata is installed"))
}
