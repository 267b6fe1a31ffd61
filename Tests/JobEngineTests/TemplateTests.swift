import JobModel
import Testing

@testable import JobEngine

@Suite struct TemplateTests {
    /// Each of thousands of children is checked by the short form.
    @Test func shortForm_lacksWhatDecidesNothing() {
        let long = JSON.string(String(repeating: "x", count: 900_000))
        let template: JSON = [
            "label": "{{item}}", "source": ["type": "url", "url": "http://h/{{item}}", "headers": ["A": long]],
            "then": [["then": ["return": [long, long]]], ["fail": ["return": "{{item}}"]]],
        ]
        let made = Template(template)
        #expect(made.short.size < 2048 && made.short.size + made.left == template.size && made.whole == template)
        #expect(made.short["source"]?["url"] == template["source"]?["url"] && made.short["label"] == template["label"])
        #expect(made.short["then"]?[1] == template["then"]?[1], "an expression may be wrong for a child")
    }
}
