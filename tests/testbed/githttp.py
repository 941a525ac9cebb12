"""Serves the bare repositories of a directory inside the node: git's own HTTP backend behind Python's server."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys

from tests.testbed import addresses


class Handler(http.server.BaseHTTPRequestHandler):
    """Hands a request to `git http-backend` the way a CGI server does."""

    protocol_version = "HTTP/1.1"
    root = ""

    def do_GET(self) -> None:
        """Discovery, and files."""
        self._backend()

    def do_POST(self) -> None:
        """Fetches."""
        self._backend()

    def _backend(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            env=self._variables(len(body)),
            capture_output=True,
            check=False,
            timeout=60,
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
        status = fields.pop("Status", "200" if head else "500")
        self.send_response(int(status.split()[0]))
        for name, value in fields.items():
            if name != "Content-Length":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _variables(self, length: int) -> dict[str, str]:
        path, _, query = self.path.partition("?")
        return os.environ | {
            "GIT_PROJECT_ROOT": self.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            # The repositories belong to whoever pushes into them.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }


if __name__ == "__main__":
    Handler.root = sys.argv[1]
    http.server.ThreadingHTTPServer((addresses.NODE, addresses.GIT_PORT), Handler).serve_forever()
