"""A running sandbox and a running demonstration, a web page in a real browser, and another user of the machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes import serving
from tests.sandbox import browsers
from windlass.kube.auth import kubeconfigs
from windlass.kube.auth.connections import Token
from windlass.kube.client.clients import KubeClient
from windlass.kube.client.resources import Resource
from windlass.kube.transport.calls import CallSender
from windlass.kube.transport.http import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 30.0  # seconds for a process to start
NOBODY = "65534"
needs_browser = pytest.mark.skipif(
    shutil.which(browsers.PROGRAM) is None, reason=f"no {browsers.PROGRAM} here: `make browser` installs it"
)
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can become another user, with setpriv"
)
WRITTEN_NAMES = {"json", "text", "untyped", "beacon", "form", "from-page"}
SEES = {"read": "refused", "json": "refused", "image": "refused", "socket": "refused"}
"""What the page sees of its attempts; of the others it sees nothing, whatever happens."""
SCRIPT = """
import http.client, json, pathlib, ssl, sys

kubeconfig, port, pid = sys.argv[1:]
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
maps, answers = "/api/v1/namespaces/default/configmaps", {}

def ask(name, method, path, body=None, **headers):
    connection = http.client.HTTPSConnection("127.0.0.1", int(port), timeout=20, context=context)
    connection.request(method, path, body, {"Content-Type": "application/json", **headers})
    answers[name] = connection.getresponse().status
    connection.close()

def read(name, path):
    try:
        answers[name] = pathlib.Path(path).read_bytes().decode(errors="replace")
    except OSError as error:
        answers[name] = error.strerror

ask("health", "GET", "/healthz")
ask("list", "GET", maps)
ask("create", "POST", maps, json.dumps({"metadata": {"name": "from-nobody"}}))
ask("guess", "GET", maps, Authorization="Bearer guess")
read("kubeconfig", kubeconfig)
read("environment", f"/proc/{pid}/environ")
read("command", f"/proc/{pid}/cmdline")
print(json.dumps(answers))
"""


@contextmanager
def sandbox(folder: Path) -> Iterator[tuple[Path, int]]:
    with serving(folder / "kubeconfig") as (process, _):
        yield folder / "kubeconfig", process.pid


@contextmanager
def demonstration(folder: Path) -> Iterator[tuple[Path, int]]:
    command = [sys.executable, "-m", "windlass", "demo", "--out", str(folder / "demo")]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "")
            assert any("export KUBECONFIG_PATH" in line for line in lines), "the demonstration did not start"
            yield folder / "demo" / "kubeconfig", process.pid
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(params=[sandbox, demonstration], ids=["sandbox", "demo"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Path, int]]:
    """The kubeconfig of a running server, in a folder that everybody can enter, and its process."""
    with tempfile.TemporaryDirectory(prefix="windlass-test-") as name:
        Path(name).chmod(0o755)
        with request.param(Path(name)) as (kubeconfig, pid):
            yield kubeconfig, pid


def answers_to_nobody(*arguments: str) -> dict[str, Any]:
    """What the script says when the user `nobody` runs it."""
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    command = [*user, os.path.realpath(sys.executable), "-ISc", SCRIPT, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd="/", check=False)
    assert ran.returncode == 0, ran.stderr
    answers: dict[str, Any] = json.loads(ran.stdout)
    return answers


async def object_names(kubeconfig: Path) -> set[str]:
    client = KubeClient(CallSender(HttpTransport(kubeconfigs.load_file(kubeconfig))))
    found: set[str] = set()
    for resource in (Resource("", "v1", "configmaps", "ConfigMap"), Resource("", "v1", "pods", "Pod")):
        items = (await client.list(resource.in_namespace("default"))).items
        found |= {item["metadata"]["name"] for item in items}
    await client.close()
    return found


@needs_browser
async def test_a_web_page_writes_nothing(served: tuple[Path, int], tmp_path: Path) -> None:
    kubeconfig, _ = served
    address = kubeconfigs.load_file(kubeconfig).server
    seen, received = browsers.visit(tmp_path, address)
    sent = {json.loads(body)["metadata"]["name"] for method, _, body in received if method == "POST"}
    assert sent == WRITTEN_NAMES - {"json"}, "a browser sends these to any server"
    assert [upgrade for _, upgrade, _ in received if upgrade] == ["websocket"]
    assert SEES.items() <= seen[address].items()
    names = await object_names(kubeconfig)
    assert "kube-root-ca.crt" in names
    assert not names & WRITTEN_NAMES


@needs_root
async def test_another_user_of_the_machine_is_refused(served: tuple[Path, int]) -> None:
    kubeconfig, pid = served
    connection = kubeconfigs.load_file(kubeconfig)
    assert isinstance(connection.auth, Token)
    answers = answers_to_nobody(str(kubeconfig), connection.server.rpartition(":")[2], str(pid))
    command_line = answers.pop("command")
    assert answers == {
        "health": 200,
        "list": 403,
        "create": 403,
        "guess": 401,
        "kubeconfig": "Permission denied",
        "environment": "Permission denied",
    }
    assert connection.auth.value not in command_line
    assert "from-nobody" not in await object_names(kubeconfig)
