/// wget, for one large file.
enum Wget {
    static let options = ["--no-config", "--quiet", "--no-proxy"]

    static func start(url: String, file: String) throws -> ChildProcess {
        try ChildProcess(["wget"] + options + ["--output-document", file, url])
    }
}
