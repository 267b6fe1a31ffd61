import JobModel
import JobProtocol

/// The bytes of a text.
func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

/// The members of an object.
func members(_ json: JSON) -> JSONObject { json.object ?? JSONObject() }

extension LineFramer {
    /// The frames that `bytes` complete.
    mutating func feed(_ bytes: [UInt8]) -> [Frame] {
        var frames: [Frame] = []
        bytes.withUnsafeBytes { feed($0, into: &frames) }
        return frames
    }
}

extension IncomingLine {
    init(_ line: [UInt8]) { self.init(line, budget: .max) }

    /// What the line answers before any method is looked at: the errors of what is no call, in order.
    var rejections: [(id: JSON?, code: Int)] {
        calls.compactMap { call in call.rejection.map { (call.request.id, $0.code) } }
    }

    /// The calls in it that can be carried out.
    var requests: [Request] { calls.filter { $0.rejection == nil }.map(\.request) }
}
