"""Every credential of a connection, in every form, in every text that the server sends: no sink shows any of them."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.commands.test_cluster import ANSWERS, APPLICATIONS, REVIEWS, refused
from tests.kube.certificate_authorities import authority
from tests.kube.loopback_servers import Seen, answer, proxying, serving
from tests.processes import windlass
from tests.secret_forms import written_forms
from windlass.cli.main import _print_bug, _print_line
from windlass.kube.redactions import Redactor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.kube.loopback_servers import Server

SECRET = "can4ry<&>/x%20y+z=="
RENEWED = "can4ry>renewed&/+q"
PASSWORD = "can4ry two/words"
PROXY_PASSWORD = "can4ry-proxy/p"
COMMIT = "3f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a"
CLIENT = authority().issue("me")
KEY_LINES = CLIENT.key.decode().splitlines()[1:3]


@dataclass(frozen=True)
class Canary:
    """One way to authenticate, and what must not show when it is used."""

    user: dict[str, Any]
    secrets: list[str]
    expected: str = ""
    """The only token that the server accepts; empty if it accepts any request."""
    uses_proxy: bool = False

    @property
    def quoted(self) -> str:
        return f"at {COMMIT}: " + " | ".join(written_forms(self.secrets))


def exec_user(directory: Path) -> dict[str, Any]:
    """The plugin says something else each time, and quotes what it said the time before."""
    plugin = directory / "plugin"
    state = directory / "answered"
    credential = '{"apiVersion":"%s","kind":"ExecCredential","status":{"token":"%s"}}'
    version = "client.authentication.k8s.io/v1"
    first, second = (credential % (version, token) for token in (SECRET, RENEWED))
    plugin.write_text(f"#!/bin/sh\nif test -e {state}; then echo '{second}'; else touch {state}; echo '{first}'; fi\n")
    plugin.chmod(0o755)
    return {"exec": {"command": str(plugin), "apiVersion": version, "interactiveMode": "Never"}}


def canaries(directory: Path) -> dict[str, Canary]:
    token_file = directory / "token"
    token_file.write_text(SECRET)
    basic = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    certificate = {
        "client-certificate-data": base64.b64encode(CLIENT.certificate).decode(),
        "client-key-data": base64.b64encode(CLIENT.key).decode(),
    }
    return {
        "token": Canary({"token": SECRET}, [SECRET]),
        "password": Canary({"username": "me", "password": PASSWORD}, [PASSWORD, basic]),
        "token file": Canary({"tokenFile": str(token_file)}, [SECRET]),
        "plugin": Canary(exec_user(directory), [SECRET, RENEWED], expected=RENEWED),
        "key and proxy": Canary(
            certificate, [*KEY_LINES, CLIENT.key.decode(), PROXY_PASSWORD, f"me:{PROXY_PASSWORD}"], uses_proxy=True
        ),
    }


KINDS = ("token", "password", "token file", "plugin", "key and proxy")


def hostile_answers(quoted: str, *, is_broken: bool, expected: str = "") -> Any:
    """An API server whose every text is `quoted`; a broken one quotes it in errors."""
    health = {"status": "Degraded", "message": quoted}
    operation = {"phase": "Failed", "message": quoted, "syncResult": {"revision": COMMIT, "resources": []}}
    status = {
        "health": health,
        "sync": {"status": quoted, "revision": COMMIT},
        "operationState": operation,
        "conditions": [{"type": "SyncError", "message": quoted}],
    }
    item = {"metadata": {"name": "a", "namespace": "argocd", "uid": "u", "resourceVersion": "3"}, "status": status}
    known: dict[str, Any] = {
        **ANSWERS,
        "/version": {"gitVersion": quoted},
        REVIEWS: {"status": {"userInfo": {"username": quoted, "groups": [quoted]}}},
        APPLICATIONS: {"metadata": {"resourceVersion": "5"}, "items": [item]},
        "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/a": item,
    }

    def answers(seen: Seen) -> bytes:
        target = seen.line.split()[1]
        path = target.partition("?")[0]
        if expected and seen.all("Authorization") != [f"Bearer {expected}"]:
            return refused(401, "Unauthorized", quoted)
        if is_broken and path != "/version":
            return answer(quoted.encode(), "500 Error") if "v1" in path else refused(403, "Forbidden", quoted)
        if "watch=1" in target or path not in known:
            return refused(404, "NotFound", quoted)
        return answer(json.dumps(known[path]).encode(), "200 OK", "Content-Type: application/json")

    return answers


@asynccontextmanager
async def hostile_server(canary: Canary, *, is_broken: bool) -> AsyncIterator[tuple[Server, dict[str, Any]]]:
    """The server, and what the kubeconfig says about its cluster."""
    context = authority().server_context("127.0.0.1")
    answers = hostile_answers(canary.quoted, is_broken=is_broken, expected=canary.expected)
    async with serving(answers, context) as server, proxying(server.port) as proxy:
        cluster = {
            "server": server.url,
            "certificate-authority-data": base64.b64encode(authority().pem).decode(),
        }
        if canary.uses_proxy:
            userinfo = f"me:{PROXY_PASSWORD.replace('/', '%2F')}"
            cluster["proxy-url"] = proxy.url.replace("://", f"://{userinfo}@")
        yield server, cluster


COMMANDS = (
    ("cluster",),
    ("wait", "a", "--timeout", "1s"),
    ("import",),
    *(("status", "--format", form) for form in ("text", "json")),
    *(("validate", "--all", "--format", form) for form in ("text", "json", "junit")),
)


@pytest.mark.parametrize("is_broken", [False, True], ids=["answers", "errors"])
@pytest.mark.parametrize("kind", KINDS)
async def test_no_sink_shows_a_credential(tmp_path: Path, kind: str, is_broken: bool) -> None:
    canary = canaries(tmp_path)[kind]
    metrics = tmp_path / "windlass.prom"
    async with hostile_server(canary, is_broken=is_broken) as (server, cluster):
        kubeconfig = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": canary.user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(kubeconfig))
        shown = ""
        for number, command in enumerate(COMMANDS):
            environ = {"KUBECONFIG_PATH": str(path), "LOG_LEVEL": "debug", "LOG_FORMAT": ("text", "json")[number % 2]}
            if command[0] == "validate":
                environ["METRICS_FILE"] = str(metrics)
            ended = await asyncio.to_thread(windlass, *command, environ=environ)
            assert "Traceback" not in ended.output
            assert "Usage:" not in ended.output
            shown += ended.output + (metrics.read_text() if metrics.exists() else "")
            (tmp_path / "answered").unlink(missing_ok=True)  # the next process starts with the first token
    assert server.seen, "nothing was asked"
    assert "[redacted]" in shown
    assert is_broken or COMMIT in shown
    for form in written_forms(canary.secrets):
        assert form not in shown


@pytest.mark.parametrize("form", written_forms([SECRET, PASSWORD]))
def test_a_traceback_shows_no_credential(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError(f"it said {form} twice") from KeyError(form)
    except ValueError as error:
        _print_bug(error, Redactor([SECRET, PASSWORD]), _print_line, debug=True)
    shown = capsys.readouterr().err
    assert "ValueError: it said [redacted] twice" in shown
    assert form not in shown.replace("[redacted]", "")
