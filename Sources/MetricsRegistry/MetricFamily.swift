package import JobModel

/// The description of a metric: a sentence, and the unit with which its name ends.
package struct MetricDescription: Sendable, Hashable {
    package let help: String
    package let unit: String?

    package init(_ help: String, unit: String? = nil) {
        self.help = help
        self.unit = unit
    }
}

/// All values with the same name.
package struct MetricFamily: Sendable, Hashable {
    package enum Kind: String, Sendable {
        case counter, gauge, summary
    }

    package struct Label: Sendable, Hashable, Comparable {
        package let name: String
        package let value: String

        package static func < (left: Label, right: Label) -> Bool {
            (left.name, left.value) < (right.name, right.value)
        }
    }

    package enum Value: Sendable, Hashable {
        case whole(Int64)
        case number(Double)
        case summary(count: Int64, sum: Double)
    }

    package struct Sample: Sendable, Hashable {
        package let labels: [Label]
        package let value: Value
    }

    package let name: String
    package let kind: Kind
    package let description: MetricDescription?
    package let samples: [Sample]

    /// The family in the form of `server.stats`.
    package var json: JSON {
        var object = JSONObject()
        object["name"] = .string(name)
        object["type"] = .string(kind.rawValue)
        object["help"] = (description?.help).map(JSON.string)
        object["unit"] = (description?.unit).map(JSON.string)
        object["samples"] = .array(samples.map(\.json))
        return .object(object)
    }
}

extension MetricFamily.Sample {
    fileprivate var json: JSON {
        var object = JSONObject()
        if !labels.isEmpty {
            var names = JSONObject()
            for label in labels { names[label.name] = .string(label.value) }
            object["labels"] = .object(names)
        }
        switch value {
        case .whole(let value): object["value"] = JSON(Int(value))
        // JSON cannot represent NaN and infinity.
        case .number(let value): object["value"] = value.isFinite ? JSON(value) : .null
        case .summary(let count, let sum):
            object["count"] = JSON(Int(count))
            object["sum"] = sum.isFinite ? JSON(sum) : .null
        }
        return .object(object)
    }
}
