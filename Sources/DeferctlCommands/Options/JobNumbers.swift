import ArgumentParser

/// The argument of verbs that act on several jobs.
struct JobNumbers: ParsableArguments {
    @Argument(help: ArgumentHelp("The numbers of the jobs.", valueName: "id"))
    var jobs: [Int64]

    func validate() throws {
        if jobs.isEmpty { throw ValidationError("Name at least one job by its number.") }
    }
}
