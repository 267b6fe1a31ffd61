import DeferctlCommands
import Glibc

@main enum Program {
    static func main() async {
        // The main queue's thread asks for a priority that only root may have, and libdispatch would complain in the journal.
        setenv("LIBDISPATCH_LOG", "NO", 0)
        await Deferctl.main()
    }
}
