import Foundation
import JobModel
import Testing

extension JobSpec {
    /// The spec that `text` writes as JSON.
    static func parsing(_ text: String, limits: JobLimits = JobLimits()) throws -> JobSpec {
        try JobSpecReader.spec(JSON(parsing: text), limits: limits)
    }

    /// A spec whose source gives 1, with these links and members beside it.
    static func chain(_ links: String, _ members: String = "") throws -> JobSpec {
        try parsing(
            #"{"source":{"type":"value","value":1},"then":[\#(links)]\#(members.isEmpty ? "" : ",")\#(members)}"#)
    }
}

extension JobSpecReader {
    static func child(
        _ json: JSON, at pointer: JSONPointer, depth: Int, limits: JobLimits, accepted: JSON? = nil
    ) throws(SpecError) -> JobSpec {
        var reader = JobSpecReader(limits: limits)
        return try reader.child(json, at: pointer, depth: depth, accepted: accepted)
    }

    static func schedule(
        _ json: JSON, at pointer: JSONPointer = JSONPointer(), limits: JobLimits
    ) throws(SpecError) -> JobSpec {
        var reader = JobSpecReader(limits: limits)
        return try reader.schedule(json, at: pointer)
    }

    static func scheduled(
        _ json: JSON, by key: ScheduleKey, at time: Timestamp, hasKey: Bool
    ) throws(JobError) -> JobSpec {
        var reader = JobSpecReader.ofStored()
        return try reader.scheduled(json, by: key, at: time, hasKey: hasKey)
    }
}

/// What is wrong with the spec that `text` writes; nil where it is accepted.
func fault(in text: String, limits: JobLimits = JobLimits()) throws -> SpecError? {
    let json = try JSON(parsing: text)
    do {
        _ = try JobSpecReader.spec(json, limits: limits)
        return nil
    } catch {
        return error
    }
}

/// A JSON file that is committed with the tests and has to be read by every later version.
struct Fixture: Sendable, CustomTestStringConvertible {
    let name: String
    let json: JSON

    var testDescription: String { name }

    /// The fixtures in a directory, by name.
    static func all(in directory: String) throws -> [Fixture] {
        let root = Bundle.module.bundleURL.appendingPathComponent("Fixtures/\(directory)")
        let files = try FileManager.default.contentsOfDirectory(at: root, includingPropertiesForKeys: nil)
        return try files.filter { $0.pathExtension == "json" }
            .sorted { $0.lastPathComponent < $1.lastPathComponent }
            .map { Fixture(name: $0.lastPathComponent, json: try JSON(parsing: [UInt8](Data(contentsOf: $0)))) }
    }
}
