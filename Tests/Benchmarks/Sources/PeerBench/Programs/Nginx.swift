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

    let base: String
    /// Another one for each run of the bench.
    private let port = 20_000 + getpid() % 10_000
    private let process: ChildProcess

    /// Serves `/small/…` (4 KB of text each), `/large.bin` of `largeSize` bytes, `/slow/…`, which trickles, and
    /// `/limited.bin`.
    init(_ bench: Bench, largeSize: Int = 16 << 20) throws {
        let directory = try bench.inMemory()
        base = "http://127.0.0.1:\(port)"
        // Bytes without patterns or holes.
        let script = """
            cd '\(directory)' && head -c \(Nginx.smallSize / 4 * 3) /dev/urandom | base64 -w0 >small.txt
            head -c \(largeSize) /dev/urandom >large.bin; head -c \(Nginx.limitedSize) /dev/urandom >limited.bin
            """
        try ChildProcess(["sh", "-c", script]).succeed()
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
        let answers = ["curl", "-q", "--silent", "--fail", "--output", "/dev/null", "\(base)/small.txt"]
        while try ChildProcess(answers).wait().status != 0 {
            guard process.age < 10 else {
                let log = (try? String(contentsOfFile: "\(directory)/error.log", encoding: .utf8)) ?? ""
                throw BenchError("nginx does not answer. It said: \(log.suffix(500))")
            }
            usleep(10_000)
        }
    }

    func stop() { process.stop() }
}
