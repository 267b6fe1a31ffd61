import CLibFuzzer
import Glibc

/// Code shared by the programs.
package enum Fuzzing {
    /// Runs libFuzzer with this program's command line.
    package static func run(_ body: @escaping @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt) -> Never {
        var count = CommandLine.argc
        var arguments = CommandLine.unsafeArgv
        exit(LLVMFuzzerRunDriver(&count, &arguments, body))
    }

    /// Passes an input to a body; a finding ends the program, as libFuzzer expects.
    package static func check(
        _ data: UnsafePointer<UInt8>?, _ size: Int, _ body: ([UInt8]) throws -> Void
    ) -> CInt {
        do { try body(Array(UnsafeBufferPointer(start: data, count: size))) } catch {
            fatalError("Found: \(error)")
        }
        return 0
    }
}
