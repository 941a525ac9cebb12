"""Whom a served sandbox serves: its owner, who has the token, and no web page."""

from __future__ import annotations

import http.client
import json
import ssl
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.sandbox.served_sandbox import running_sandbox
from windlass.kube.auth import kubeconfigs
from windlass.kube.auth.connections import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

MAPS = "/api/v1/namespaces/default/configmaps"
WRITTEN = json.dumps({"metadata": {"generateName": "written-"}}).encode()
JSON = "application/json"
TOKEN = {"Authorization": "Bearer $TOKEN"}


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    code: int
    method: str = "GET"
    target: str = MAPS
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def __str__(self) -> str:
        return self.name.replace(" ", "_")


def write(name: str, code: int, content_type: str | None = JSON, **headers: str) -> Row:
    named = {header.replace("_", "-"): value for header, value in headers.items()}
    types = {"Content-Type": content_type} if content_type is not None else {}
    return Row(name, code, "POST", headers={**TOKEN, **types, **named}, body=WRITTEN)


ROWS = [
    Row("the owner reads", 200, headers=TOKEN),
    write("the owner writes", 201),
    write("the owner writes YAML", 201, "application/yaml"),
    write("the owner writes with a character set", 201, "application/json; charset=utf-8"),
    Row("header names are not case-sensitive", 200, headers={"authorization": "Bearer $TOKEN"}),
    Row("anyone asks for health", 200, target="/healthz"),
    Row("anyone asks whether it lives", 200, target="/livez"),
    Row("anyone asks whether it is ready", 200, target="/readyz?verbose"),
    Row("anyone asks for the version", 200, target="/version"),
    Row("an anonymous caller discovers", 403, target="/api"),
    Row("an anonymous caller asks for OpenAPI", 403, target="/openapi/v2"),
    Row("an anonymous caller lists", 403),
    Row("an anonymous caller lists a kind that does not exist", 403, target="/apis/example.com/v1/things"),
    Row("an anonymous caller watches", 403, target=f"{MAPS}?watch=1"),
    Row("an anonymous caller writes", 403, "POST", headers={"Content-Type": JSON}, body=WRITTEN),
    Row("the body of an anonymous caller is not read", 403, "POST", headers={"Content-Type": JSON}, body=b"[" * 10_000),
    Row("an anonymous caller deletes", 403, "DELETE"),
    Row("an anonymous caller asks what it may do", 403, "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"Content-Type": JSON}, b'{"spec":{}}'),
    Row("an anonymous caller impersonates", 403, headers={"Impersonate-User": "kubernetes-admin"}),
    Row("an anonymous caller impersonates a group", 403,
        headers={"Impersonate-User": "x", "Impersonate-Group": "system:masters"}),
    Row("a token that no sandbox issued", 401, headers={"Authorization": "Bearer nonsense"}),
    Row("a token signed with nothing", 401, headers={"Authorization": "Bearer e30.e30."}),
    Row("a password", 401, headers={"Authorization": "Basic YTpi"}),
    write("localhost is this machine", 201, Host="localhost:$PORT"),
    write("a name that was made to resolve to loopback", 403, Host="attacker.test:$PORT"),
    write("another port", 403, Host="127.0.0.1:1"),
    write("no port", 403, Host="127.0.0.1"),
    write("no host", 403, Host=""),
    write("an address that only begins like ours", 403, Host="127.0.0.1.attacker.test:$PORT"),
    Row("even health is not for rebound names", 403, target="/healthz", headers={"Host": "attacker.test"}),
    write("a page of another site", 403, Origin="https://attacker.test"),
    write("a page of another port", 403, Origin="http://127.0.0.1:8080"),
    write("a page without an origin", 403, Origin="null"),
    write("another site, told by the browser", 403, Sec_Fetch_Site="cross-site"),
    write("another port, told by the browser", 403, Sec_Fetch_Site="same-site"),
    write("an address typed by the user", 201, Sec_Fetch_Site="none"),
    Row("a preflight", 403, "OPTIONS", headers={"Origin": "http://a.test", "Access-Control-Request-Method": "POST"}),
    Row("a WebSocket of a page", 403, headers={"Origin": "http://a.test", "Upgrade": "websocket",
                                               "Connection": "Upgrade"}),
    write("a form as text", 415, "text/plain"),
    write("a form as text that names JSON", 415, "text/plain; application/json"),
    write("a form", 415, "application/x-www-form-urlencoded"),
    write("a form with parts", 415, "multipart/form-data; boundary=x"),
    write("no media type, as the official Python client", 201, None),
    Row("a delete with a form", 415, "DELETE", headers={**TOKEN, "Content-Type": "text/plain"}, body=b"{}"),
    Row("a body that is too large", 413, "POST", headers={**TOKEN, "Content-Type": JSON}, body=b" " * (4 << 20)),
    Row("JSON that is nested too deeply", 400, "POST", headers={**TOKEN, "Content-Type": JSON}, body=b"[" * 200_000),
    Row("deep JSON that is complete", 400, "POST", headers={**TOKEN, "Content-Type": JSON},
        body=b'{"a":' * 500 + b"1" + b"}" * 500),
    Row("YAML that is nested too deeply", 400, "POST", headers={**TOKEN, "Content-Type": "application/yaml"},
        body=b"- " * 1_000_000),
    Row("YAML with aliases that stand for billions of values", 400, "POST",
        headers={**TOKEN, "Content-Type": "application/yaml"},
        body="\n".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]" if n else "a1: &a1 [x]"
                       for n in range(12)).encode()),
    Row("YAML that contains itself", 400, "POST", headers={**TOKEN, "Content-Type": "application/yaml"},
        body=b"a: &a [*a]"),
]  # fmt: skip


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[int, str]]:
    with running_sandbox() as kubeconfig:
        connection = kubeconfigs.load(kubeconfig.encode(), where="a test")
        assert isinstance(connection.auth, Token)
        yield int(connection.server.rpartition(":")[2]), connection.auth.value


def exchange(row: Row, served: tuple[int, str]) -> tuple[int, bytes]:
    """Status and body; a connection that is closed while the body is still sent counts as 413."""
    port, token = served
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
    headers = {n: v.replace("$TOKEN", token).replace("$PORT", str(port)) for n, v in row.headers.items()}
    with closing(connection), suppress(BrokenPipeError, ConnectionResetError):
        connection.request(row.method, row.target, row.body, headers)
        answer = connection.getresponse()
        assert "Access-Control-Allow-Origin" not in answer.headers
        return answer.status, answer.read()
    return 413, b""


def objects(served: tuple[int, str]) -> int:
    return len(json.loads(exchange(ROWS[0], served)[1])["items"])


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_who_is_served(row: Row, served: tuple[int, str]) -> None:
    before = objects(served)
    assert exchange(row, served)[0] == row.code
    assert objects(served) - before == (row.code == 201)
