import DeferctlCommands

@main enum Program {
    static func main() async { await Deferctl.main() }
}
