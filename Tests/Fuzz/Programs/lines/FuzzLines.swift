import FuzzBodies
import Fuzzing

@main struct FuzzLines {
    static func main() { Fuzzing.run { data, size in Fuzzing.check(data, size, LineBody.check) } }
}
