"""Argo CD's API through the API server: what is sent and understood, and answers that are not what was asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.kube.scripted_server import answer, ask, ok, refusal
from windlass.argo.argocd_server import (
    ANSWER_SECONDS,
    MAX_ANSWER_BYTES,
    MAX_OBJECTS,
    MAX_TOKEN_LENGTH,
    ArgoCdServer,
    NoArgoCdServer,
    NotRendered,
    token_problem,
)
from windlass.kube.api_errors import ConnectionLost
from windlass.kube.transport.transports import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.kube.scripted_server import Answer, ScriptedServer
    from windlass.kube.client.clients import KubeClient

TOKEN = "ey.argo-token.1"
APP = ("apps", "web")
PROXY = "/api/v1/namespaces/argocd/services/https:argocd-server:443/proxy/api/v1/applications/web"


def manifests(answers: Sequence[Answer], revisions: tuple[str, ...] = ("abc",)) -> tuple[Any, ScriptedServer]:
    return ask(answers, lambda kube: ArgoCdServer(kube, "argocd", TOKEN).manifests(APP, revisions))


def objects(answers: Sequence[Answer]) -> Any:
    return ask(answers, lambda kube: ArgoCdServer(kube, "argocd", TOKEN).compared_objects(APP))[0]


def test_the_token_is_sent_as_a_cookie_because_the_api_server_keeps_the_authorization() -> None:
    found, server = manifests([ok({"manifests": ['{"kind": "ConfigMap"}', "null"], "revision": "abc"})])
    [request] = server.requests
    assert found == ({"kind": "ConfigMap"},)
    target = urlsplit(request.target)
    assert (request.method, target.path.replace("%3A", ":")) == ("GET", f"{PROXY}/manifests")
    assert parse_qs(target.query) == {"revision": ["abc"], "appNamespace": ["apps"]}
    assert dict(request.headers)["Cookie"] == f"argocd.token={TOKEN}"
    assert "Authorization" not in dict(request.headers)


def test_each_source_has_a_revision() -> None:
    _, server = manifests([ok({"manifests": None})], ("abc", "1.2.3"))
    query = parse_qs(urlsplit(server.requests[0].target).query)
    assert (query["revisions"], query["sourcePositions"]) == (["abc", "1.2.3"], ["1", "2"])
    assert "revision" not in query


def test_objects_come_with_their_states() -> None:
    live = json.dumps({"kind": "Deployment", "spec": {"replicas": 2}})
    row = {"group": "apps", "kind": "Deployment", "namespace": "web", "name": "web", "liveState": live}
    states = {"normalizedLiveState": live, "predictedLiveState": "null", "targetState": "null"}
    [found] = objects([ok({"items": [{**row, **states}, {**row, "hook": True}]})])
    assert (found.key, found.live, found.predicted, found.has_target) == (
        ("apps/Deployment", "web", "web"),
        {"kind": "Deployment", "spec": {"replicas": 2}},
        None,
        False,
    )


def test_a_server_without_tls_is_asked_without_tls_and_remembered() -> None:
    async def twice(kube: KubeClient) -> Any:
        server = ArgoCdServer(kube, "argocd", TOKEN)
        return [await server.manifests(APP, ("abc",)) for _ in range(2)]

    reset = refusal(503, "ServiceUnavailable", "error trying to reach service: connection reset by peer")
    found, server = ask([reset, ok({"manifests": []}), ok({"manifests": []})], twice)
    assert found == [(), ()]
    ports = [
        request.target.partition("/proxy/")[0].rpartition("/")[2].replace("%3A", ":") for request in server.requests
    ]
    assert ports == ["https:argocd-server:443", "http:argocd-server:80", "http:argocd-server:80"]


PERMISSION = 'services "https:argocd-server:443" is forbidden: User "jane" cannot get resource "services/proxy" in API '
PERMISSION += 'group "" in the namespace "argocd"'
UNUSABLE: dict[str, tuple[list[Answer], str]] = {
    "token refused": ([answer(401, {"error": "no session", "code": 16, "message": "no session"})], "accept the token"),
    "no right": ([refusal(403, "Forbidden", PERMISSION)], "user jane may not get services/proxy in namespace argocd"),
    "no service": ([refusal(404, "NotFound", 'services "argocd-server" not found')], "not found"),
    "no pod": ([refusal(503, "ServiceUnavailable", "no endpoints available")] * 2, "no endpoints available"),
    "redirect": ([Response(307, {"Location": "https://elsewhere.test/"}, b"")], "not followed"),
    "connection lost": ([ConnectionLost("the connection broke")], "the connection broke"),
}
ODD: dict[str, tuple[list[Answer], str]] = {
    "not permitted by Argo CD": ([answer(403, {"message": "permission denied"})], "permission denied (403)"),
    "cannot be rendered": ([answer(500, {"error": "x", "message": "helm template failed"})], "helm template failed"),
    "never answers": ([None], f"no complete answer within {ANSWER_SECONDS:g} s"),
    "a login page": ([Response(200, {"Content-Type": "text/html"}, b"<html>login</html>")], "not what was requested"),
    "another document": ([ok(["a"])], "not what was requested"),
    "wrong types": ([ok({"manifests": [1]})], "not what was requested"),
    "no text": ([Response(200, {}, b"\xff\xfe")], "not what was requested"),
    "nothing": ([Response(200, {}, b"")], "not what was requested"),
    "a manifest that is no JSON": ([ok({"manifests": ["{"]})], "no JSON"),
    "a manifest that is no object": ([ok({"manifests": ["[1]"]})], "an object that is none"),
    "a manifest that is nested deeply": ([ok({"manifests": ["[" * 100_000]})], "no JSON"),
    "too large": ([Response(200, {}, b" " * (MAX_ANSWER_BYTES + 1))], "larger than 32 MiB"),
    "too many objects": ([ok({"manifests": ["null"] * (MAX_OBJECTS + 1)})], "more than 5,000 objects"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_api_that_cannot_be_used_is_one_error_for_all(case: str) -> None:
    answers, text = UNUSABLE[case]
    error, server = manifests(answers)
    assert isinstance(error, NoArgoCdServer)
    assert text in str(error)
    assert TOKEN not in str(error)
    assert {urlsplit(request.target).netloc for request in server.requests} == {""}


@pytest.mark.parametrize("case", ODD)
def test_an_odd_answer_is_an_error_of_one_application(case: str) -> None:
    answers, text = ODD[case]
    error, server = manifests(answers)
    assert isinstance(error, NotRendered), error
    assert text in str(error)
    assert len(server.requests) == 1, "rendering is not repeated"


@pytest.mark.parametrize("text", ["", "a b", "a\nb", "a\r\nX: y", "a;b", "ü", "a" * (MAX_TOKEN_LENGTH + 1)])
def test_what_cannot_be_a_token_is_not_sent(text: str) -> None:
    assert token_problem(text)
    assert not token_problem("eyJhbGciOiJIUzI1NiJ9.e30.abc_DEF-1")
