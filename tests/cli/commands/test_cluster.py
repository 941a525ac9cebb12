"""`windlass cluster` as a process against servers on loopback: what it shows, and one clear error for each mishap."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.certificate_authorities import LONG_AGO, authority
from tests.kube.loopback_servers import Seen, answer, listening, refusing_port, serving
from tests.processes import Ended, windlass

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "correct-horse-battery-staple"
APPLICATIONS = "/apis/argoproj.io/v1alpha1/applications"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ANSWERS: dict[str, Any] = {
    "/version": {"gitVersion": "v1.34.2"},
    "/api": {"versions": ["v1"]},
    "/api/v1": {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]},
    "/apis": {"groups": [{"name": "argoproj.io", "versions": [{"groupVersion": "argoproj.io/v1alpha1"}]}]},
    "/apis/argoproj.io/v1alpha1": {"resources": [{"name": "applications", "kind": "Application", "namespaced": True}]},
    REVIEWS: {"status": {"userInfo": {"username": "jane", "groups": ["admins", "sre"]}}},
    APPLICATIONS: {
        "metadata": {"resourceVersion": "5"},
        "items": [
            {"metadata": {"name": "a"}, "status": {"health": {"status": "Healthy"}, "sync": {"status": "Synced"}}},
            {"metadata": {"name": "b"}, "status": {"health": {"status": "Degraded"}}},
            {"metadata": {"name": "c"}},
        ],
    },
}


def api(overrides: dict[str, Any] | None = None) -> Any:
    """An API server in a dictionary: what is not in it is not found; a bytes value is sent as it is."""
    known = {**ANSWERS, **(overrides or {})}

    def answers(seen: Seen) -> bytes:
        value = known.get(seen.line.split()[1].partition("?")[0])
        if isinstance(value, bytes):
            return value
        if value is None:
            return refused(404, "NotFound", "no such thing")
        return answer(json.dumps(value).encode(), "200 OK", "Content-Type: application/json")

    return answers


def refused(code: int, reason: str, message: str = "") -> bytes:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return answer(json.dumps(status).encode(), f"{code} {reason}", "Content-Type: application/json")


def kubeconfig(server: str, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> bytes:
    return json.dumps(
        {
            "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
            "users": [{"name": "u", "user": {"token": SECRET} if user is None else user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    ).encode()


async def cluster(content: bytes) -> Ended:
    data = base64.b64encode(content).decode()
    return await asyncio.to_thread(windlass, "cluster", environ={"KUBECONFIG_DATA": data})


def assert_one_clear_error(ended: Ended, code: int, *messages: str) -> None:
    assert (ended.code, ended.stdout) == (code, ""), ended.output
    assert ended.stderr.startswith("error: ")
    for message in messages:
        assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.splitlines()) <= 3
    assert SECRET not in ended.stderr


async def test_it_shows_what_is_there_and_that_it_wrote_nothing() -> None:
    async with serving(api()) as server:
        ended = await cluster(kubeconfig(server.url))
    assert ended.code == 0, ended.stderr
    assert ended.stdout == (
        f"server        {server.url}  v1.34.2\n"
        "identity      jane  (admins, sre)\n"
        "serves        2 resources in 2 groups\n"
        "applications  3  (1 Degraded, 1 Healthy, 1 Unknown)\n"
        "calls         7 requests, 0 writes\n"
    )
    assert {seen.line.split()[0] for seen in server.seen} == {"GET", "POST"}
    assert [seen.line.split()[1] for seen in server.seen if seen.line.startswith("POST")] == [REVIEWS]


async def test_a_server_without_argo_cd_and_with_a_broken_extension() -> None:
    metrics = {"name": "metrics.k8s.io", "versions": [{"groupVersion": "metrics.k8s.io/v1beta1"}]}
    missing = {APPLICATIONS: None, REVIEWS: None, "/apis": {"groups": [metrics]}}
    async with serving(api(missing)) as server:
        ended = await cluster(kubeconfig(server.url))
    assert ended.code == 0, ended.stderr
    assert "identity      unknown: this server does not tell\n" in ended.stdout
    assert "applications  none: Argo CD's Application is not served here\n" in ended.stdout
    assert "no answer     metrics.k8s.io/v1beta1" in ended.stdout


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({}, "unknown: this server does not tell"),
        ({"status": {"userInfo": {"username": "jane", "groups": None}}}, "jane"),
    ],
    ids=["nothing", "no groups"],
)
async def test_a_server_that_says_little_about_who_we_are(said: dict[str, Any], shown: str) -> None:
    async with serving(api({REVIEWS: said})) as server:
        ended = await cluster(kubeconfig(server.url))
    assert ended.code == 0, ended.stderr
    assert f"identity      {shown}\n" in ended.stdout


async def test_few_rights_are_no_error() -> None:
    async with serving(api({APPLICATIONS: refused(403, "Forbidden")})) as server:
        ended = await cluster(kubeconfig(server.url))
    assert ended.code == 0
    assert "applications  not readable with these rights\n" in ended.stdout
    async with serving(api({APPLICATIONS: {"metadata": {}, "items": []}})) as server:
        ended = await cluster(kubeconfig(server.url))
    assert "applications  0\n" in ended.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "KUBECONFIG_DATA", id="empty"),
        pytest.param(b"\x00\x01\xff", "KUBECONFIG_DATA", id="binary"),
        pytest.param(f"token: {SECRET}\n  x: [".encode(), "KUBECONFIG_DATA:2", id="not YAML"),
        pytest.param(b"[1, 2]", "KUBECONFIG_DATA", id="a list"),
        pytest.param(kubeconfig("ftp://x"), "clusters[c].cluster.server", id="a strange address"),
        pytest.param(kubeconfig("https://x", user={"client-key-data": "!"}), "users[u].user.client-", id="bad key"),
        pytest.param(
            kubeconfig("https://x", cluster={"proxy-url": "socks5://x:1"}), "socks5:// is not supported", id="SOCKS"
        ),
    ],
)
async def test_a_broken_kubeconfig_is_3_and_names_the_place(content: bytes, message: str) -> None:
    assert_one_clear_error(await cluster(content), 3, message)


@pytest.mark.parametrize("sign", ["%", "é"])
def test_data_that_is_not_base64_is_3(sign: str) -> None:
    assert_one_clear_error(
        windlass("cluster", environ={"KUBECONFIG_DATA": f"{sign}{SECRET}"}), 3, "not base64", "KUBECONFIG_DATA"
    )


def test_a_file_that_is_not_there_is_3(tmp_path: Path) -> None:
    missing = tmp_path / "nothing"
    assert_one_clear_error(windlass("cluster", "--kubeconfig", str(missing)), 3, str(missing))
    assert_one_clear_error(windlass("cluster", environ={"KUBECONFIG_PATH": str(tmp_path)}), 3, str(tmp_path))


async def test_a_file_can_be_named_and_wins_over_the_variables(tmp_path: Path) -> None:
    async with serving(api()) as server:
        file = tmp_path / "kubeconfig"
        file.write_bytes(kubeconfig(server.url))
        arguments = ["cluster", "--kubeconfig", str(file)]
        environ = {"KUBECONFIG_DATA": "x", "KUBECONFIG_PATH": "y"}
        ended = await asyncio.to_thread(windlass, *arguments, environ=environ)
        assert ended.code == 0, ended.stderr
        ended = await asyncio.to_thread(windlass, *arguments, "--context", "z")
        assert_one_clear_error(ended, 3, "z", str(file))


async def test_a_server_signed_by_another_authority() -> None:
    ours, theirs = authority(), authority("another")
    trust = {"certificate-authority-data": base64.b64encode(ours.pem).decode()}
    async with serving(api(), theirs.server_context("127.0.0.1")) as server:
        ended = await cluster(kubeconfig(server.url, cluster=trust))
    assert_one_clear_error(ended, 1, "certificate", server.url)
    assert len(server.seen) == 0


async def test_a_server_whose_certificate_has_expired() -> None:
    trust = {"certificate-authority-data": base64.b64encode(authority().pem).decode()}
    async with serving(api(), authority().server_context("127.0.0.1", until=LONG_AGO)) as server:
        ended = await cluster(kubeconfig(server.url, cluster=trust))
    assert_one_clear_error(ended, 1, "expired", server.url)


async def test_an_expired_token() -> None:
    async with serving(api({"/version": refused(401, "Unauthorized", "Unauthorized")})) as server:
        ended = await cluster(kubeconfig(server.url))
    assert_one_clear_error(ended, 1, "Unauthorized", "credentials were rejected", f"{server.url}/version")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param(f"echo the session is over >&2; echo {SECRET}; exit 7", "the session is over", id="fails"),
        pytest.param(f"echo {SECRET}", "JSON", id="writes junk"),
        pytest.param(f"echo Bearer {SECRET} >&2; exit 1", "Bearer", id="tells a secret"),
    ],
)
async def test_an_exec_plugin_that_fails(tmp_path: Path, script: str, message: str) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\n{script}\n")
    plugin.chmod(0o755)
    exec_ = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    for port in refusing_port():
        ended = await cluster(kubeconfig(f"http://127.0.0.1:{port}", user={"exec": exec_}))
        assert_one_clear_error(ended, 1, "plugin", message)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(answer(b'{"gitVersion": ', "200 OK"), id="malformed JSON"),
        pytest.param(answer(b"<html>Welcome!</html>", "200 OK"), id="a web page"),
        pytest.param(answer(b"\xff\xfe", "200 OK"), id="bytes"),
    ],
)
async def test_an_answer_that_is_not_an_api_servers(body: bytes) -> None:
    async with serving(api({"/version": body})) as server:
        ended = await cluster(kubeconfig(server.url))
    assert_one_clear_error(ended, 1, "not what was requested", f"{server.url}/version")


async def test_an_answer_that_is_not_http() -> None:
    async with serving(lambda _: b"220 mail.example.org ESMTP\r\n\r\n") as server:
        ended = await cluster(kubeconfig(server.url))
    assert_one_clear_error(ended, 1, f"{server.url}/version")


async def test_a_server_that_closes_in_the_middle_of_a_body() -> None:
    cut = answer(b"x" * 100, "200 OK", "Connection: close")[:-50]
    async with serving(api({"/version": cut})) as server:
        ended = await cluster(kubeconfig(server.url))
    assert_one_clear_error(ended, 1, "broke before the answer was complete", f"{server.url}/version")
    assert len(server.seen) == 5, "reading is tried again, a few times"


async def test_a_busy_server_is_waited_for() -> None:
    busy = iter([answer(b"", "429 Too Many Requests", "Retry-After: 1"), answer(b'{"gitVersion": "v1"}', "200 OK")])

    def answers(seen: Seen) -> bytes:
        return next(busy) if seen.line.startswith("GET /version") else api()(seen)

    async with serving(answers) as server:
        ended = await cluster(kubeconfig(server.url))
    assert ended.code == 0, ended.stderr
    assert "v1\n" in ended.stdout


async def test_a_page_of_a_proxy_in_the_way() -> None:
    page = answer(b"<html><h1>Bad Gateway</h1></html>", "502 Bad Gateway")
    async with serving(api({"/version": page})) as server:
        ended = await cluster(kubeconfig(server.url))
    assert_one_clear_error(ended, 1, "HTTP 502 with a body that is no Status", "Bad Gateway")


async def test_a_port_that_hangs_up_at_once() -> None:
    async def hang_up(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        return

    async with listening(hang_up) as port:
        ended = await cluster(kubeconfig(f"http://127.0.0.1:{port}"))
    assert_one_clear_error(ended, 1, f"http://127.0.0.1:{port}/version")
