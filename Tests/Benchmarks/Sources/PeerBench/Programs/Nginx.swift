import Foundation
import Glibc

/// A running nginx on loopback that serves files from memory.
final class Nginx {
    static let smallSize = 4096
    /// Bytes a second for each transfer below `/slow/`, in eight pieces, which are pages as nginx sends no less at
    /// once.
    static let slowRate = 32 << 10

    /// `/limited.bin`, and the bytes a second that each connection gets of it.
    static let limitedSize = 128 << 20
    static let limit = 12 << 20

    let port: Int
    private let process: ChildProcess

    /// Serves `/small/…` (4 KB of text each), `/large.bin` of `largeSize` bytes, `/slow/…`, which trickles, and
    /// `/limited.bin`.
    init(_ bench: Bench, largeSize: Int = 16 << 20) throws {
        let directory = try bench.directories.inMemory()
        port = try Self.freePort()
        try Self.write(bytes: Nginx.smallSize, to: "\(directory)/small.txt", isText: true)
        try Self.write(bytes: largeSize, to: "\(directory)/large.bin", isText: false)
        try Self.write(bytes: Nginx.limitedSize, to: "\(directory)/limited.bin", isText: false)
        let configuration = """
            \(geteuid() == 0 ? "user root;" : "")
            daemon off;
            worker_processes auto;
            pid \(directory)/nginx.pid;
            error_log \(directory)/error.log;
            events { worker_connections 8192; }
            http {
                access_log off;
                sendfile on;
                tcp_nopush on;
                keepalive_requests 1000000;
                client_body_temp_path \(directory)/client;
                proxy_temp_path \(directory)/proxy;
                fastcgi_temp_path \(directory)/fastcgi;
                uwsgi_temp_path \(directory)/uwsgi;
                scgi_temp_path \(directory)/scgi;
                default_type application/octet-stream;
                types { text/plain txt; }
                server {
                    listen 127.0.0.1:\(port) backlog=4096 reuseport;
                    root \(directory);
                    location /small/ { rewrite ^ /small.txt break; }
                    location /limited.bin { limit_rate \(Nginx.limit); }
                    location /slow/ {
                        rewrite ^ /large.bin break;
                        limit_rate \(Nginx.slowRate);
                        sendfile_max_chunk \(Nginx.slowRate / 8);
                    }
                }
            }
            """
        try configuration.write(toFile: "\(directory)/nginx.conf", atomically: false, encoding: .utf8)
        process = try ChildProcess(
            ["nginx", "-p", directory, "-e", "\(directory)/error.log", "-c", "\(directory)/nginx.conf"],
            output: "\(directory)/nginx.log")
        while !Self.isListening(port) {
            guard process.age < 10 else {
                let log = (try? String(contentsOfFile: "\(directory)/error.log", encoding: .utf8)) ?? ""
                throw BenchError("nginx does not listen. It said: \(log.suffix(500))")
            }
            usleep(1000)
        }
    }

    var base: String { "http://127.0.0.1:\(port)" }

    func stop() { process.stop() }

    private static func address(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        return address
    }

    private static func isListening(_ port: Int) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        return withSocketAddress(address(port)) { connect(descriptor, $0, $1) } == 0
    }

    private static func freePort() throws -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var bound = address(0)
        guard withSocketAddress(bound, { bind(descriptor, $0, $1) }) == 0 else {
            throw BenchError.system("find a free port")
        }
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &bound) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &length) }
        }
        return Int(in_port_t(bigEndian: bound.sin_port))
    }

    private static func withSocketAddress<Value>(
        _ address: sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value
    ) -> Value {
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// Fills a file with bytes without patterns or holes.
    private static func write(bytes: Int, to path: String, isText: Bool) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        guard descriptor >= 0 else { throw BenchError.system("make \(path)") }
        defer { close(descriptor) }
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        var left = bytes
        while left > 0 {
            var words = [UInt64](repeating: 0, count: (1 << 20) / 8)
            for index in words.indices {
                state ^= state << 13
                state ^= state >> 7
                state ^= state << 17
                // Six bits a byte, from the space on, are text.
                words[index] = isText ? (state & 0x3F3F_3F3F_3F3F_3F3F) + 0x3030_3030_3030_3030 : state
            }
            let count = words.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, min($0.count, left)) }
            guard count > 0 else { throw BenchError.system("write \(path)") }
            left -= count
        }
    }
}
