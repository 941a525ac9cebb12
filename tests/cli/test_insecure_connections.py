"""A connection without verified certificates: every command says so, in its log and in its report."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.commands.test_cluster import ANSWERS, APPLICATIONS, api, kubeconfig
from tests.kube.certificate_authorities import authority
from tests.kube.loopback_servers import serving
from tests.processes import windlass
from tests.settings.setting_files import ENVIRONMENT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.processes import Ended

NOTICE = "is not verified (insecure-skip-tls-verify in KUBECONFIG_DATA)"
RUN_OPTIONS = ("--environment", "staging", "--format", "json")
COMMANDS = {
    "cluster": ("cluster",),
    "wait": ("wait", "a", "--timeout", "1s"),
    "import": ("import",),
    "status": ("status", "--format", "json"),
    "validate": ("validate", "--all", "--format", "json"),
    "plan": ("plan", *RUN_OPTIONS),
    "deploy": ("deploy", *RUN_OPTIONS, "--timeout", "2s"),
    "teardown": ("teardown", *RUN_OPTIONS, "--timeout", "2s"),
}


async def run_insecurely(tmp_path: Path, command: tuple[str, ...], *, insecure: bool) -> Ended:
    (tmp_path / "environment.yaml").write_text(ENVIRONMENT)
    files = ("--environment-file", str(tmp_path / "environment.yaml")) if RUN_OPTIONS[0] in command else ()
    certificates = {"certificate-authority-data": base64.b64encode(authority().pem).decode()}
    namespace = {"/api/v1/namespaces/argocd": {"metadata": {"name": "argocd"}}}
    namespaced = {
        APPLICATIONS.replace("/applications", "/namespaces/argocd/applications"): ANSWERS[APPLICATIONS],
        **namespace,
    }
    async with serving(api(namespaced), authority().server_context("127.0.0.1")) as server:
        cluster = {"insecure-skip-tls-verify": True} if insecure else certificates
        data = base64.b64encode(kubeconfig(server.url, cluster=cluster)).decode()
        environ = {"KUBECONFIG_DATA": data, "TEARDOWN_CONFIRM": "staging"}
        return await asyncio.to_thread(windlass, *command, *files, environ=environ)


@pytest.mark.parametrize("name", COMMANDS)
async def test_every_command_tells_that_the_certificate_is_not_verified(tmp_path: Path, name: str) -> None:
    ended = await run_insecurely(tmp_path, COMMANDS[name], insecure=True)
    assert NOTICE in (ended.stdout if name in {"cluster", "status"} else ended.stderr), ended.output
    if "--format" in COMMANDS[name] and ended.stdout:
        notices = json.loads(ended.stdout)["notices"]
        assert len([notice for notice in notices if NOTICE in notice]) == 1
    assert ended.stdout or name not in ("cluster", "import", "validate"), ended.output


@pytest.mark.parametrize("name", ["cluster", "validate"])
async def test_a_verified_certificate_needs_no_notice(tmp_path: Path, name: str) -> None:
    ended = await run_insecurely(tmp_path, COMMANDS[name], insecure=False)
    assert "not verified" not in ended.output
