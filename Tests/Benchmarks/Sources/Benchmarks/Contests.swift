import DeferredKit
import NIOCore

/// The contests. NIO's futures stay on their own event loop, where they take no lock, except in the last two.
func contests(on loop: any EventLoop) -> [Contest] {
    [
        Contest(
            name: "resolve, one map",
            times: 100_000,
            deferred: { times in
                for index in 0..<times {
                    let promise = Promise<Int, any Error>()
                    keep(promise.deferred.map { $0 &+ 1 })
                    promise.succeed(index)
                }
            },
            nio: { times in
                try await loop.submit {
                    for index in 0..<times {
                        let promise = loop.makePromise(of: Int.self)
                        keep(promise.futureResult.map { $0 &+ 1 })
                        promise.succeed(index)
                    }
                }.get()
            },
            task: { times in
                for index in 0..<times / 10 {
                    let first = Task { index }
                    for _ in 0..<10 { keep(await Task { await first.value &+ 1 }.value) }
                }
            }
        ),
        Contest(
            name: "chain of 10 maps",
            times: 20_000,
            deferred: { times in
                for index in 0..<times {
                    let promise = Promise<Int, any Error>()
                    var last = promise.deferred
                    for _ in 0..<10 { last = last.map { $0 &+ 1 } }
                    promise.succeed(index)
                    keep(last)
                }
            },
            nio: { times in
                try await loop.submit {
                    for index in 0..<times {
                        let promise = loop.makePromise(of: Int.self)
                        var last = promise.futureResult
                        for _ in 0..<10 { last = last.map { $0 &+ 1 } }
                        promise.succeed(index)
                        keep(last)
                    }
                }.get()
            },
            task: { times in
                for index in 0..<times {
                    var last = Task { index }
                    for _ in 0..<10 {
                        let before = last
                        last = Task { await before.value &+ 1 }
                    }
                    keep(await last.value)
                }
            }
        ),
        Contest(
            name: "flatMap, resolved inner",
            times: 100_000,
            deferred: { times in
                for index in 0..<times {
                    let promise = Promise<Int, any Error>()
                    keep(promise.deferred.flatMap { .succeeded($0 &+ 1) })
                    promise.succeed(index)
                }
            },
            nio: { times in
                try await loop.submit {
                    for index in 0..<times {
                        let promise = loop.makePromise(of: Int.self)
                        keep(promise.futureResult.flatMap { loop.makeSucceededFuture($0 &+ 1) })
                        promise.succeed(index)
                    }
                }.get()
            },
            task: { times in
                for index in 0..<times / 10 {
                    let first = Task { index }
                    for _ in 0..<10 {
                        keep(
                            await Task {
                                let value = await first.value
                                return await Task { value &+ 1 }.value
                            }.value
                        )
                    }
                }
            }
        ),
        Contest(
            name: "flatMap, pending inner",
            times: 100_000,
            deferred: { times in
                for index in 0..<times {
                    let promise = Promise<Int, any Error>()
                    let inner = Promise<Int, any Error>()
                    keep(promise.deferred.flatMap { _ in inner.deferred })
                    promise.succeed(index)
                    inner.succeed(index)
                }
            },
            nio: { times in
                try await loop.submit {
                    for index in 0..<times {
                        let promise = loop.makePromise(of: Int.self)
                        let inner = loop.makePromise(of: Int.self)
                        keep(promise.futureResult.flatMap { _ in inner.futureResult })
                        promise.succeed(index)
                        inner.succeed(index)
                    }
                }.get()
            },
            task: { times in
                for index in 0..<times / 10 {
                    let first = Task { index }
                    for _ in 0..<10 {
                        keep(
                            await Task {
                                let value = await first.value
                                return await Task { value }.value
                            }.value
                        )
                    }
                }
            }
        ),
        Contest(
            name: "all of 1,000",
            times: 200,
            deferred: { times in
                for _ in 0..<times {
                    let promises = (0..<1000).map { _ in Promise<Int, any Error>() }
                    keep(Deferred.all(promises.map(\.deferred)))
                    for (index, promise) in promises.enumerated() { promise.succeed(index) }
                }
            },
            nio: { times in
                try await loop.submit {
                    for _ in 0..<times {
                        let promises = (0..<1000).map { _ in loop.makePromise(of: Int.self) }
                        keep(EventLoopFuture.whenAllSucceed(promises.map(\.futureResult), on: loop))
                        for (index, promise) in promises.enumerated() { promise.succeed(index) }
                    }
                }.get()
            },
            task: { times in
                for _ in 0..<times {
                    let values = await withTaskGroup(of: (Int, Int).self) { group in
                        for index in 0..<1000 { group.addTask { (index, index) } }
                        var values = [Int](repeating: 0, count: 1000)
                        for await (index, value) in group { values[index] = value }
                        return values
                    }
                    keep(values)
                }
            }
        ),
        Contest(
            name: "cross-thread get",
            times: 10_000,
            deferred: { times in
                for index in 0..<times {
                    let promise = Promise<Int, any Error>()
                    loop.execute { promise.succeed(index) }
                    keep(try await promise.deferred.get())
                }
            },
            nio: { times in
                for index in 0..<times {
                    let promise = loop.makePromise(of: Int.self)
                    loop.execute { promise.succeed(index) }
                    keep(try await promise.futureResult.get())
                }
            },
            // A task that waits for the same thread, not for a neighbour in Swift's own pool.
            task: { times in
                for index in 0..<times {
                    keep(await withCheckedContinuation { done in loop.execute { done.resume(returning: index) } })
                }
            }
        ),
        Contest(
            name: "get of what a task makes",
            times: 10_000,
            deferred: { times in
                for index in 0..<times { keep(try await Deferred<Int, any Error> { index }.get()) }
            },
            nio: { times in
                for index in 0..<times { keep(try await loop.makeFutureWithTask { index }.get()) }
            },
            task: { times in
                for index in 0..<times { keep(await Task { index }.value) }
            }
        ),
    ]
}

/// Keeps the compiler from omitting unused results.
@inline(never)
func keep<T>(_ value: T) {
    withExtendedLifetime(value) {}
}
