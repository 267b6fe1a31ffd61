import FuzzBodies
import Fuzzing

@main struct FuzzCalendar {
    static func main() { Fuzzing.run { data, size in Fuzzing.check(data, size, CalendarBody.check) } }
}
