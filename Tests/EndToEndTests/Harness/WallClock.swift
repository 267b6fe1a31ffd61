import Foundation
import Glibc
import TestSupport
import Testing

/// The wall clock of one program, which a test sets.
struct WallClock {
    /// Makes a program use it.
    let environment: [String: String]
    private let ahead: FileHandle
    private let set: FileHandle

    init(in directory: TemporaryDirectory) async throws {
        let library = try await Interposer(Interposer.wallClock, in: directory)
        let (file, pipe) = (directory.path + "/ahead", directory.path + "/set")
        try Data(count: 8).write(to: URL(fileURLWithPath: file))
        try #require(mkfifo(pipe, 0o600) == 0)
        ahead = try #require(FileHandle(forUpdatingAtPath: file))
        set = try #require(FileHandle(forUpdatingAtPath: pipe))
        environment = ["LD_PRELOAD": library.path, "CLOCK_AHEAD": file, "CLOCK_SET": pipe]
    }

    /// Sets it to so many seconds ahead of the real one.
    func leap(to seconds: Int64) throws {
        try ahead.seek(toOffset: 0)
        try withUnsafeBytes(of: seconds) { try ahead.write(contentsOf: Data($0)) }
        try set.write(contentsOf: Data(repeating: 1, count: 8))
    }
}
