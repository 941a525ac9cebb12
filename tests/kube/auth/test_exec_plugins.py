"""Exec plugins, as small scripts."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.leaks import assert_hidden
from windlass.errors import InvalidInput
from windlass.kube.api_errors import Unreachable
from windlass.kube.auth.auth_headers import ClientIdentity
from windlass.kube.auth.connections import ClientCertificate, Connection, ExecPlugin, Pem, Proxy, Tls
from windlass.kube.auth.credentials import credentials_for
from windlass.kube.auth.exec_plugins import KILL_TIMEOUT, RUN_TIMEOUT, ExecPluginCredentials
from windlass.kube.clocks import Clock
from windlass.kube.transport.calls import CallLimits
from windlass.simulation.virtual_time import EPOCH

if TYPE_CHECKING:
    from pathlib import Path

V1 = "client.authentication.k8s.io/v1"
WHERE = "exec plugin login (kubeconfig f)"
NO_TLS = Tls()
ENVIRON = {"PATH": os.defpath, "INHERITED": "yes"}


class Hand:
    now = EPOCH

    def clock(self) -> Clock:
        return Clock(now=lambda: self.now)


def answer(api_version: str = V1, kind: str = "ExecCredential", **status: Any) -> str:
    return json.dumps({"apiVersion": api_version, "kind": kind, "status": status})


def script(directory: Path, text: str, name: str = "login") -> str:
    """The path of a plugin that counts its runs in `runs`."""
    file = directory / name
    file.write_text(f"#!/bin/sh\necho run >> {directory}/runs\n{text}\n")
    file.chmod(0o755)
    return str(file)


def runs(directory: Path) -> int:
    return len((directory / "runs").read_text().splitlines())


def plugin(
    command: str, *, hand: Hand | None = None, limit: float = 30, tls: Tls = NO_TLS, **fields: Any
) -> ExecPluginCredentials:
    described = ExecPlugin(**({"command": command, "api_version": V1, "where": "f: users[u].user.exec"} | fields))
    connection = Connection("https://k:6443", "f", tls=tls, auth=described, environ=ENVIRON)
    clock = (hand or Hand()).clock()
    return ExecPluginCredentials(described, connection, clock, timedelta(seconds=limit))


def says(said: str) -> str:
    return f"cat <<'END'\n{said}\nEND"


async def test_a_token_is_kept_as_long_as_it_does_not_expire(tmp_path: Path) -> None:
    source = plugin(script(tmp_path, says(answer(token="s3cret\n"))))
    identity = await source.identity()
    assert identity == ClientIdentity("Bearer s3cret")
    assert await source.identity() is identity
    assert runs(tmp_path) == 1
    assert_hidden(identity, "s3cret")


async def test_a_connection_with_a_plugin_asks_it(tmp_path: Path) -> None:
    login = ExecPlugin(script(tmp_path, says(answer(token="t"))), V1, "f")
    source = credentials_for(Connection("https://k", "f", auth=login, environ=ENVIRON), Clock())
    assert await source.identity() == ClientIdentity("Bearer t")


async def test_a_certificate_is_shown_instead_of_the_kubeconfig_s(tmp_path: Path) -> None:
    own = ClientCertificate(Pem(b"own", "f"), Pem(b"own", "f"))
    command = script(tmp_path, says(answer(clientCertificateData="chain", clientKeyData="s3cret")))
    identity = await plugin(command, tls=Tls(client_certificate=own)).identity()
    assert identity == ClientIdentity("", ClientCertificate(Pem(b"chain", WHERE), Pem(b"s3cret", WHERE)))
    assert_hidden(identity, "s3cret")
    token_only = await plugin(script(tmp_path, says(answer(token="t"))), tls=Tls(client_certificate=own)).identity()
    assert token_only == ClientIdentity("Bearer t", own)


async def test_it_runs_again_a_little_before_the_expiry(tmp_path: Path) -> None:
    hand = Hand()
    expiry = (hand.now + timedelta(hours=1)).isoformat()
    source = plugin(script(tmp_path, says(answer(token="t", expirationTimestamp=expiry))), hand=hand)
    await source.identity()
    hand.now += timedelta(minutes=59, seconds=49)
    await source.identity()
    assert runs(tmp_path) == 1
    hand.now += timedelta(seconds=1)
    await source.identity()
    assert runs(tmp_path) == 2


async def test_those_who_come_at_the_same_time_share_one_run(tmp_path: Path) -> None:
    source = plugin(script(tmp_path, "sleep 0.1\n" + says(answer(token="t"))))
    async with asyncio.TaskGroup() as tasks:
        askers = [tasks.create_task(source.identity()) for _ in range(20)]
    assert len({id(asker.result()) for asker in askers}) == 1
    assert runs(tmp_path) == 1


async def test_a_rejected_identity_is_renewed_once_for_all(tmp_path: Path) -> None:
    source = plugin(script(tmp_path, f"cat <<END\n{answer(token='t$(wc -l < ' + str(tmp_path) + '/runs)')}\nEND"))
    rejected = await source.identity()
    async with asyncio.TaskGroup() as tasks:
        renewals = [tasks.create_task(source.renew(rejected)) for _ in range(10)]
    assert all(renewal.result() for renewal in renewals)
    assert await source.identity() == ClientIdentity("Bearer t2")
    assert runs(tmp_path) == 2


async def test_the_same_token_again_is_no_renewal(tmp_path: Path) -> None:
    source = plugin(script(tmp_path, says(answer(token="t"))))
    assert not await source.renew(await source.identity())
    assert runs(tmp_path) == 2


async def test_what_the_plugin_is_given(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        f'cd {tmp_path}; printf %s "$KUBERNETES_EXEC_INFO" > info; cat > stdin\n'
        'echo "$* $INHERITED $OWN $PATH" > given\n' + says(answer(token="t")),
    )
    await plugin(command, args=("a", "b c"), env=(("OWN", "mine"), ("PATH", os.defpath + ":/x"))).identity()
    assert (tmp_path / "given").read_text() == f"a b c yes mine {os.defpath}:/x\n"
    assert (tmp_path / "stdin").read_text() == ""
    assert json.loads((tmp_path / "info").read_text()) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }


async def test_what_the_plugin_is_told_about_the_cluster(tmp_path: Path) -> None:
    command = script(tmp_path, f'printf %s "$KUBERNETES_EXEC_INFO" > {tmp_path}/info\n' + says(answer(token="t")))
    described = ExecPlugin(command, V1, "f", cluster_config=b'{"audience":"x"}')
    tls = Tls(Pem(b"the ca", "f"), server_name="name")
    proxy = Proxy("http://p:1", "me:pw")
    connection = Connection("https://k:6443", "f", tls=tls, proxy=proxy, auth=described, environ=ENVIRON)
    await ExecPluginCredentials(described, connection, Clock()).identity()
    assert json.loads((tmp_path / "info").read_text())["spec"]["cluster"] == {
        "server": "https://k:6443",
        "tls-server-name": "name",
        "certificate-authority-data": "dGhlIGNh",
        "proxy-url": "http://me:pw@p:1",
        "config": {"audience": "x"},
    }


async def test_a_bare_name_is_found_on_the_path_of_the_given_environment(tmp_path: Path) -> None:
    script(tmp_path, says(answer(token="t")), name="windlass-test-login")
    described = ExecPlugin("windlass-test-login", V1, "f")
    environ = {"PATH": f"{os.defpath}:{tmp_path}"}
    connection = Connection("https://k", "f", auth=described, environ=environ)
    assert await ExecPluginCredentials(described, connection, Clock()).identity() == ClientIdentity("Bearer t")
    with pytest.raises(InvalidInput, match="the command windlass-test-login is not there"):
        await ExecPluginCredentials(described, replace(connection, environ={}), Clock()).identity()


@pytest.mark.parametrize(
    ("hint", "shown"), [("get it\n from here\n", "get it from here"), ("", "install it, or correct PATH")]
)
async def test_a_missing_command_brings_the_install_hint(tmp_path: Path, hint: str, shown: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await plugin(str(tmp_path / "missing"), install_hint=hint).identity()
    assert caught.value.what == f"the command {tmp_path}/missing is not there, or cannot be executed"
    assert caught.value.where == "f: users[u].user.exec"
    assert caught.value.hint == shown


@pytest.mark.parametrize(
    ("fields", "content", "what"),
    [
        ({}, "#!/no/such/interpreter\n", "the command cannot be started: No such file or directory"),
        ({"args": ("s3cret\0",)}, "#!/bin/sh\n", "the command cannot be started: a NUL character"),
    ],
)
async def test_a_command_that_cannot_start(tmp_path: Path, fields: dict[str, Any], content: str, what: str) -> None:
    command = script(tmp_path, "")
    (tmp_path / "login").write_text(content)
    with pytest.raises(InvalidInput) as caught:
        await plugin(command, **fields).identity()
    assert caught.value.what.startswith(what)
    assert caught.value.where == "f: users[u].user.exec"
    assert_hidden(caught.value, "s3cret")


PEM = "-----BEGIN PRIVATE KEY-----"
NO_JSON = "its answer is not an ExecCredential in JSON"
NEITHER = "its answer has neither a token nor a client certificate"
HALF = "its answer has only one of client certificate and key"
FAILED = "failed with exit code"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("exit 0", NO_JSON),
        ("echo s3cret", NO_JSON),
        ("printf '\\377s3cret'", NO_JSON),
        ("echo '[\"s3cret\"]'", NO_JSON),
        (says(answer(token=["s3cret"])), NO_JSON),
        (says(answer(token="s3cret", expirationTimestamp="s3cret")), NO_JSON),
        (says(answer(token="s3cret", expirationTimestamp="2030-01-01T00:00:00")), NO_JSON),
        ("head -c 3000000 /dev/zero", NO_JSON),
        (says(answer(kind="s3cret", token="t")), "its answer is not of the kind ExecCredential"),
        (says(answer(V1 + "beta1", token="s3cret")), f"its response does not have the requested version, {V1}"),
        (says(answer()), NEITHER),
        (says(json.dumps({"apiVersion": V1, "kind": "ExecCredential"})), NEITHER),
        (says(answer(clientCertificateData="x")), HALF),
        (says(answer(token="t", clientKeyData=f"{PEM}s3cret")), HALF),
        (says(answer(token="s3cret\r\nX-Other: 1")), "not a token"),
        ("echo s3cret; exit 3", "failed with exit code 3, saying nothing"),
        ("echo one >&2; echo 'no profile' >&2; exit 1", "failed with exit code 1: one no profile"),
        (
            'echo token=s3cret Bearer s3cret "$OWN" >&2; exit 1',
            f"{FAILED} 1: token=[redacted] Bearer [redacted] [redacted]",
        ),
        ("head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 1", "failed with exit code 1: …xxxx"),
        ("kill -9 $$", "failed with exit code -9, saying nothing"),
    ],
)
async def test_a_plugin_that_fails(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(Unreachable) as caught:
        await plugin(script(tmp_path, text), env=(("OWN", "own-s3cret"),)).identity()
    assert caught.value.what.startswith(what)
    assert caught.value.where == WHERE
    assert len(caught.value.what) < 350
    assert_hidden(caught.value, "s3cret")


async def gone(pid: int) -> bool:
    """Killed, though perhaps not yet reaped by whoever inherited it."""
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as file:  # noqa: ASYNC230, PTH123 - a line in memory
                if file.read().rpartition(")")[2].split()[0] in "ZX":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        await Clock().sleep(0.02)
    return False


HANGING = "sleep 60 &\necho $! > {0}/child.new\nmv {0}/child.new {0}/child\necho $$ > {0}/self\nwait"


def test_a_plugin_that_hangs_is_told_before_the_call_is_late() -> None:
    assert RUN_TIMEOUT.total_seconds() + KILL_TIMEOUT.total_seconds() < CallLimits().timeout


async def test_a_plugin_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"no answer within 0\.3 s; it was killed") as caught:
        await plugin(script(tmp_path, HANGING.format(tmp_path)), limit=0.3).identity()
    assert caught.value.where == WHERE
    assert await gone(int((tmp_path / "self").read_text()))
    assert await gone(int((tmp_path / "child").read_text()))


async def test_a_plugin_is_killed_when_nobody_waits_any_more(tmp_path: Path) -> None:
    source = plugin(script(tmp_path, HANGING.format(tmp_path)))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await source.identity()
    assert await gone(int((tmp_path / "child").read_text()))
    script(tmp_path, says(answer(token="t")))
    assert await source.identity() == ClientIdentity("Bearer t")


async def test_a_grandchild_that_keeps_the_pipes_does_not_keep_us(tmp_path: Path) -> None:
    command = script(tmp_path, f"setsid sleep 60 & echo $! > {tmp_path}/child")
    with pytest.raises(Unreachable, match="no answer within"):
        await plugin(command, limit=0.3).identity()
    os.kill(int((tmp_path / "child").read_text()), 9)
