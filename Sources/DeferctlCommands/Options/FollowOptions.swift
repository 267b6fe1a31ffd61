import ArgumentParser

/// The flags of verbs that submit a job and follow it.
struct FollowOptions: ParsableArguments {
    @Flag(name: .long, help: "Print the job's number and do not wait for it.")
    var detach = false

    @Flag(name: .shortAndLong, help: "Show no progress; messages about failures come all the same.")
    var quiet = false
}
