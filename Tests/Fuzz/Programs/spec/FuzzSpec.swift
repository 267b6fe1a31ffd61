import FuzzBodies
import Fuzzing

@main struct FuzzSpec {
    static func main() { Fuzzing.run { data, size in Fuzzing.check(data, size, SpecBody.check) } }
}
