import JobModel
import Testing

@testable import JobCore

@Suite struct AdvancingSchedulesTests {
    private func row(of owner: UInt32, bytes: Int = 100) -> Schedule {
        Schedule(
            key: ScheduleKey(owner: owner, name: "s"), timing: .every(1000), catchUp: .none, overlap: .skip,
            isSuspended: false, setAt: Timestamp(milliseconds: 0), specSize: bytes)
    }

    @Test func owner_hasAsMuchAsIsLeft_toOthers() {
        var advancing = AdvancingSchedules()
        var counts: [Int] = []
        for owner: UInt32 in 1...3 {
            var count = 0
            while advancing.admits(owner) {
                advancing.add(row(of: owner))
                count += 1
            }
            counts.append(count)
        }
        #expect(counts == [128, 64, 32])
        for _ in 0..<128 { advancing.remove(row(of: 1)) }
        #expect(advancing.admits(1) && advancing.admits(2) && advancing.admits(4))
    }

    @Test func pause_isOfOneOwner() {
        var advancing = AdvancingSchedules()
        advancing.pause(1)
        #expect(!advancing.admits(1) && advancing.admits(2))
        advancing.endPauses()
        #expect(advancing.admits(1))
    }

    @Test func largeOnes_comeOneAtATime_ofEachOwner_andOnlySoManyBytesInAll() {
        var advancing = AdvancingSchedules()
        for owner: UInt32 in 1...4 {
            #expect(advancing.admits(owner))
            advancing.add(row(of: owner, bytes: 1 << 20))
            #expect(!advancing.admits(owner))
        }
        #expect(!advancing.admits(5))
        advancing.remove(row(of: 1, bytes: 1 << 20))
        #expect(advancing.admits(1) && advancing.admits(5) && !advancing.admits(2))
    }
}
