import Testing

@testable import DeferctlCommands

@Suite struct SurroundingsTests {
    @Test func environment_isWhatIsUTF8_andTellsTheRest() {
        let valid = Array("A=b=c\0B=\0A=2\0no variable\0=x\0É=\n\0".utf8)
        let variables = valid + [0x43, 0x3D, 0xE9, 0] + [0xE9, 0x3D]
        let surroundings = Surroundings(environment: variables)
        #expect(surroundings.environment == ["A": "b=c", "B": "", "É": "\n"])
        #expect(surroundings.omitted == ["C", "\\xe9"])
    }

    @Test func bytesThatAreNotUTF8_areEscaped() {
        #expect(String(escaping: [0x61, 0x20, 0xC3, 0xA4, 0x80]) == "a \\xc3\\xa4\\x80")
    }
}
