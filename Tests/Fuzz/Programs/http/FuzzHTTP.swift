import FuzzSourceBodies
import Fuzzing

@main struct FuzzHTTP {
    static func main() { Fuzzing.run { data, size in Fuzzing.check(data, size, AnswerBody.check) } }
}
