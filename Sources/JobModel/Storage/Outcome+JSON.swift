extension Result where Success == JSON, Failure == JobError {
    /// The outcome as the store keeps it: `{"ok": value}` or `{"error": error}`.
    package var json: JSON {
        switch self {
        case .success(let value): ["ok": value]
        case .failure(let error): ["error": error.json]
        }
    }

    /// The outcome that `json` writes down, or nil where it is none.
    package init?(json: JSON) {
        if let value = json["ok"] {
            self = .success(value)
        } else if let error = json["error"] {
            self = .failure(JobError(json: error))
        } else {
            return nil
        }
    }
}

extension Job.FailedLink {
    /// The failed link as the store keeps it: `{"link": number, "incoming": outcome}`.
    package var json: JSON {
        var object = JSONObject()
        object.append("link", JSON(link))
        object.append("incoming", ifPresent: incoming?.json)
        return .object(object)
    }

    /// The failed link that `json` writes down, or nil where it is none.
    package init?(json: JSON) {
        guard let link = json["link"]?.int else { return nil }
        self.init(link: link, incoming: json["incoming"].flatMap(Outcome.init(json:)))
    }
}
