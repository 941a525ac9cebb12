"""A page of another site in a real browser: what it tries on a server, and what a server without protection receives.

`python -m tests.sandbox.browsers` installs the browser, for `make browser`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.testbed import packages
from windlass.sandbox.apiserver.access import certificates

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAM = "chromium"
PATIENCE = 60.0  # seconds for the browser to start, load the page and report
PAGE = """<!doctype html><meta charset=utf-8><title>a page of another site</title>
<script>
const maps = "/api/v1/namespaces/default/configmaps";
const settings = name => JSON.stringify({apiVersion: "v1", kind: "ConfigMap", metadata: {name}});
const pod = JSON.stringify({apiVersion: "v1", kind: "Pod", metadata: {name: "from-page"},
  spec: {restartPolicy: "Never", containers: [{name: "main", image: "windlass", args: ["demo"]}]}});

function post(url, mode, body, type) {
  const headers = type ? {"Content-Type": type} : {};
  return fetch(url, {method: "POST", mode, body, headers, credentials: "include"});
}
function form(url, text) {  // a form sends NAME=VALUE, so the equals sign goes into a text of the object
  const element = document.createElement("form");
  const frame = document.createElement("iframe");
  frame.name = "frame" + Math.random();
  Object.assign(element, {method: "POST", action: url, enctype: "text/plain", target: frame.name});
  const fields = {name: text.slice(0, -1) + ',"data":{"x":"', value: '"}}'};
  const input = Object.assign(document.createElement("input"), fields);
  element.append(input);
  document.body.append(frame, element);
  return new Promise(done => { frame.onload = () => done("sent"); element.submit(); });
}
function socket(url) {
  return new Promise((done, fail) => {
    const opened = new WebSocket(url.replace("http", "ws"));
    opened.onopen = () => done("open");
    opened.onerror = () => fail("closed");
  });
}
const attempts = base => ({
  read: () => fetch(base + maps, {credentials: "include"}),
  json: () => post(base + maps, "cors", settings("json"), "application/json"),
  text: () => post(base + maps, "no-cors", settings("text"), "text/plain"),
  untyped: () => post(base + maps, "no-cors", new Blob([settings("untyped")])),
  pod: () => post(base + "/api/v1/namespaces/default/pods", "no-cors", pod, "text/plain"),
  beacon: async () => navigator.sendBeacon(base + maps, settings("beacon")) ? "sent" : "not sent",
  form: () => form(base + maps, settings("form")),
  image: () => new Promise((done, fail) => Object.assign(new Image(), {src: base + maps, onload: done, onerror: fail})),
  socket: () => socket(base + "/api/v1/namespaces/default/pods/x/exec?command=sh"),
});
async function report() {
  const results = {};
  for (const base of new URLSearchParams(location.search).getAll("server")) {
    results[base] = {};
    for (const [name, attempt] of Object.entries(attempts(base))) {
      const late = new Promise(done => setTimeout(() => done("no answer"), 5000));
      results[base][name] = await Promise.race([attempt(), late]).then(
        answer => answer instanceof Response ? answer.type + " " + answer.status : String(answer), () => "refused");
    }
  }
  await new Promise(done => setTimeout(done, 500));  // a beacon is sent in the background
  await fetch("/report", {method: "POST", body: JSON.stringify(results)});
}
onload = report;
</script><body></body>"""


class PageServer(ThreadingHTTPServer):
    """Serves the page and receives its report."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _PageHandler)
        self.reported = threading.Event()
        self.report: dict[str, dict[str, str]] = {}


class _PageHandler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        self.answer(PAGE.encode())

    def do_POST(self) -> None:
        self.server.report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(b"")
        self.server.reported.set()

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


class OpenServer(ThreadingHTTPServer):
    """A server without any protection but TLS: it shows which requests a browser really sends."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _OpenHandler)
        self.received: list[tuple[str, str, bytes]] = []
        context, _ = certificates.create_certificates()
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_: Any) -> None:
        """A browser closes connections that it does not need."""


class _OpenHandler(BaseHTTPRequestHandler):
    server: OpenServer

    def do_GET(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.received.append((self.command, self.headers.get("Upgrade", ""), content))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.do_GET()

    def do_OPTIONS(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def _running(server: ThreadingHTTPServer) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def visit(folder: Path, *servers: str) -> tuple[dict[str, dict[str, str]], list[tuple[str, str, bytes]]]:
    """Open the page, which tries everything on an open server and then on the given ones.

    Gives what the page saw, by server, and what the open server received.
    """
    page_server, open_server = PageServer(), OpenServer()
    with _running(page_server) as page, _running(open_server) as unprotected:
        query = "&".join(f"server={server}" for server in (f"https://{unprotected}", *servers))
        command = [
            PROGRAM,
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),  # root has no sandbox
            *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--no-proxy-server"),
            "--ignore-certificate-errors",  # a user who has accepted the certificate is protected no less
            f"--user-data-dir={folder / 'profile'}",
            f"http://{page}/?{query}",
        ]
        environ = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
        log = folder / "browser.log"
        with log.open("wb") as output:
            browser = subprocess.Popen(command, env=environ, stdout=output, stderr=output, start_new_session=True)
        try:
            assert page_server.reported.wait(PATIENCE), log.read_text(errors="replace")[-2000:]
        finally:
            os.killpg(browser.pid, signal.SIGTERM)
            browser.wait(20)
    first = next(iter(page_server.report))
    return {name: seen for name, seen in page_server.report.items() if name != first}, open_server.received


if __name__ == "__main__":
    if shutil.which(PROGRAM) is None:
        packages.install([PROGRAM])
    sys.exit(shutil.which(PROGRAM) is None)
