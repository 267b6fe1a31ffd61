#!/usr/bin/env python3
"""Downloads a URL with deferd: client.py URL PATH. Shows progress, and prints where the file is."""
import json
import os
import socket
import sys


def default_socket():
    own = os.environ.get("XDG_RUNTIME_DIR", "") + "/deferd/deferd.sock"
    return os.environ.get("DEFERD_SOCKET") or (own if os.path.exists(own) else "/run/deferd/deferd.sock")


url, path = sys.argv[1:]
spec = {"source": {"type": "download", "url": url, "path": path, "exists": "replace"}, "label": "client.py"}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(default_socket())
    request = {"jsonrpc": "2.0", "id": 1, "method": "job.submit", "params": {**spec, "watch": True}}
    connection.sendall(json.dumps(request).encode() + b"\n")
    # One JSON value per line: the answer first, then what happens to the job.
    for line in connection.makefile("r", encoding="utf-8"):
        message = json.loads(line)
        if "error" in message:
            sys.exit(f"The job was rejected: {message['error']['message']}")
        if message.get("method") == "job.progress":
            progress = message["params"]["progress"]
            print(progress["completed"], "of", progress["total"], progress["unit"], file=sys.stderr)
        if message.get("method") == "job.state":
            job = message["params"]["snapshot"]
            if job["state"] == "succeeded":
                print(job["result"]["path"])
                break
            if job["state"] in ("failed", "cancelled"):
                sys.exit(job["error"]["message"])
    else:
        sys.exit("The daemon went away before the job ended; look with: deferctl list")
