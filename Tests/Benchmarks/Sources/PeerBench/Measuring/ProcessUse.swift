import Foundation
import Glibc

/// The resources that a running process has used so far, from the kernel's counters.
struct ProcessUse {
    /// CPU seconds of all threads, including ended ones.
    let seconds: Double
    /// Resident bytes.
    let resident: Int
    /// Context switches by thread.
    private let switches: [String: Int]

    init(of process: pid_t) {
        seconds = Self.seconds(of: process)
        resident = Self.number("VmRSS:", in: "/proc/\(process)/status") * 1024
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        switches = tasks.reduce(into: [:]) { switches, task in
            let status = "/proc/\(process)/task/\(task)/status"
            switches[task] =
                Self.number("voluntary_ctxt_switches:", in: status)
                + Self.number("nonvoluntary_ctxt_switches:", in: status)
        }
    }

    /// Context switches between two measurements.
    func switches(since before: ProcessUse) -> Int {
        // A thread that has ended in between took one at least: its last.
        switches.reduce(0) { $0 + $1.value - before.switches[$1.key, default: 0] }
            + before.switches.count { switches[$0.key] == nil }
    }

    /// CPU seconds only, for when a measurement runs and reading more would disturb it.
    static func seconds(of process: pid_t) -> Double {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else { return .nan }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func number(_ name: String, in file: String) -> Int {
        let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
        return line.flatMap { Int($0.dropFirst(name.count).filter(\.isNumber)) } ?? 0
    }
}
