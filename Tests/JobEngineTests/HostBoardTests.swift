import Testing

@testable import JobEngine

@Suite struct HostBoardTests {
    @Test func host_isOpen_belowItsLimit() {
        var board = HostBoard(limit: 2)
        #expect(board.isOpen("a"))
        board.enter("a")
        #expect(board.isOpen("a"))
        board.enter("a")
        #expect(!board.isOpen("a") && board.isOpen("b"))
        board.leave("a")
        #expect(board.isOpen("a"))
        board.enter("a")
        #expect(!board.isOpen("a"))
    }

    @Test func host_isClosed_whileItIsHeld() {
        var board = HostBoard(limit: 2)
        board.hold("a")
        board.hold("a")
        #expect(!board.isOpen("a") && board.isOpen("b"))
        board.enter("a")
        board.leave("a")
        #expect(!board.isOpen("a"))
        board.release("a")
        #expect(board.isOpen("a"))
        board.release("b")
        #expect(board.isOpen("b"))
    }

    @Test func leaving_whatWasNotEntered_changesNothing() {
        var board = HostBoard(limit: 1)
        board.leave("a")
        board.enter("a")
        #expect(!board.isOpen("a"))
        board.leave("a")
        board.leave("a")
        board.enter("a")
        #expect(!board.isOpen("a"))
    }
}
