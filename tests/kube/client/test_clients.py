"""What each verb puts on the wire, and what it makes of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.scripted_server import answer, ask, ok, refusal
from windlass.errors import InvalidInput
from windlass.kube.api_errors import BadAnswer, Conflict, Expired, FieldOwner
from windlass.kube.client.objects import TypedObject
from windlass.kube.client.readers import MAX_LIST_ITEMS, MAX_LIST_PAGES, MAX_LOG_BYTES, ProxiedGet, Selection
from windlass.kube.client.resources import PODS, SERVICES, Resource
from windlass.kube.transport.transports import Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.kube.client.clients import KubeClient

APPLICATIONS = Resource("argoproj.io", "v1alpha1", "applications", "Application")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
APP = APPLICATIONS.named("vault", "argocd")
HERE = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
WEB = SERVICES.named("https:web:443", "n").with_subresource("proxy")
DELETE = {"apiVersion": "v1", "kind": "DeleteOptions"}


@pytest.mark.parametrize(
    ("question", "line", "content_type", "body"),
    [
        pytest.param(lambda k: k.get(APP), f"GET {HERE}/vault", None, None, id="get"),
        pytest.param(
            lambda k: k.get(APP.with_subresource("status")), f"GET {HERE}/vault/status", None, None, id="get status"
        ),
        pytest.param(lambda k: k.get(NODES.named("n1")), "GET /api/v1/nodes/n1", None, None, id="get cluster-wide"),
        pytest.param(
            lambda k: k.create(APPLICATIONS.in_namespace("argocd"), {"a": 1}, dry_run=True),
            f"POST {HERE}?fieldManager=windlass&dryRun=All", "application/json", {"a": 1}, id="create, dry run",
        ),
        pytest.param(
            lambda k: k.replace(APP, {"a": 1}),
            f"PUT {HERE}/vault?fieldManager=windlass", "application/json", {"a": 1}, id="replace",
        ),
        pytest.param(
            lambda k: k.patch(APP, {"a": None}),
            f"PATCH {HERE}/vault?fieldManager=windlass", "application/merge-patch+json", {"a": None}, id="merge patch",
        ),
        pytest.param(
            lambda k: k.patch(APP.with_subresource("scale"), [{"op": "remove", "path": "/a"}]),
            f"PATCH {HERE}/vault/scale?fieldManager=windlass",
            "application/json-patch+json", [{"op": "remove", "path": "/a"}], id="JSON patch of a subresource",
        ),
        pytest.param(
            lambda k: k.apply(APP, {"a": 1}),
            f"PATCH {HERE}/vault?fieldManager=windlass", "application/apply-patch+yaml", {"a": 1}, id="apply",
        ),
        pytest.param(
            lambda k: k.apply(APP, {"a": 1}, force=True, dry_run=True),
            f"PATCH {HERE}/vault?fieldManager=windlass&dryRun=All&force=true",
            "application/apply-patch+yaml", {"a": 1}, id="apply, forced, dry run",
        ),
        pytest.param(
            lambda k: k.delete(APP),
            f"DELETE {HERE}/vault", "application/json", {**DELETE, "propagationPolicy": "Background"}, id="delete",
        ),
        pytest.param(
            lambda k: k.delete(APP, uid="u", resource_version="7", propagation="Foreground", dry_run=True),
            f"DELETE {HERE}/vault", "application/json",
            {
                **DELETE, "propagationPolicy": "Foreground", "preconditions": {"uid": "u", "resourceVersion": "7"},
                "dryRun": ["All"],
            },
            id="delete with conditions, dry run",
        ),
        pytest.param(
            lambda k: k.evict(PODS.named("p", "n"), uid="u"),
            "POST /api/v1/namespaces/n/pods/p/eviction?fieldManager=windlass", "application/json",
            {
                "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "n"},
                "deleteOptions": {"preconditions": {"uid": "u"}},
            },
            id="evict",
        ),
        pytest.param(
            lambda k: k.get_through_service(ProxiedGet(WEB, "/a", (("b", "c d"),)), dict),
            "GET /api/v1/namespaces/n/services/https%3Aweb%3A443/proxy/a?b=c+d", None, None, id="a service",
        ),
    ],
)  # fmt: skip
def test_a_verb_on_the_wire(
    question: Callable[[KubeClient], Awaitable[Any]], line: str, content_type: str | None, body: Any
) -> None:
    result, server = ask([ok({"kind": "Answer"})], question)
    assert result == {"kind": "Answer"}
    [request] = server.requests
    assert f"{request.method} {request.target}" == line
    assert dict(request.headers).get("Content-Type") == content_type
    assert server.bodies == ([] if body is None else [body])


def test_a_token_is_asked_for_with_its_life_and_audiences() -> None:
    granted = ok({"status": {"token": "abc"}})
    result, server = ask(
        [granted], lambda kube: kube.request_token("robot", "n", expiration_seconds=600, audiences=["vault"])
    )
    assert result == "abc"
    assert server.requests[0].target == "/api/v1/namespaces/n/serviceaccounts/robot/token?fieldManager=windlass"
    assert server.bodies[0]["spec"] == {"expirationSeconds": 600, "audiences": ["vault"]}


@pytest.mark.parametrize("granted", [{}, {"status": None}, {"status": {}}], ids=["nothing", "null", "no token"])
def test_no_token_is_an_error(granted: Any) -> None:
    result, _ = ask([ok(granted)], lambda kube: kube.request_token("robot", "n"))
    assert isinstance(result, BadAnswer)
    assert "serviceaccounts/token n/robot at scripted://" in str(result)


def test_logs_are_text_whatever_bytes_a_container_writes() -> None:
    body = Response(200, {}, b"one\n\xfftwo\n")
    result, server = ask([body], lambda kube: kube.logs(PODS.named("p", "n"), container="c", tail=2, previous=True))
    assert result == "one\n�two\n"
    query = f"container=c&tailLines=2&previous=true&limitBytes={MAX_LOG_BYTES}"
    assert server.requests[0].target == f"/api/v1/namespaces/n/pods/p/log?{query}"


def test_a_log_that_the_server_cut_ends_with_a_whole_line() -> None:
    whole, cut = b"x" * (MAX_LOG_BYTES - 9), b"half a secret"
    for body, shown in (
        (whole + b"\n" + cut, whole),
        (b"y" + whole + cut, (b"y" + whole + cut)[:MAX_LOG_BYTES]),
        (b"a\nb\n", b"a\nb\n"),
    ):
        result, _ = ask([Response(200, {}, body)], lambda kube: kube.logs(PODS.named("p", "n")))
        assert result == shown.decode()


def test_a_review_is_a_post_that_counts_as_reading() -> None:
    reviews = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
    _, server = ask([answer(201, {})], lambda kube: kube.review(reviews, {"token": "t"}))
    assert server.requests[0].method == "POST"
    assert server.bodies == [{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "t"}}]


def page(names: str, token: str = "", version: str = "9") -> Response:
    items = [{"metadata": {"name": name}} for name in names]
    return ok({"metadata": {"resourceVersion": version, "continue": token}, "items": items})


def test_a_list_is_all_its_pages() -> None:
    selection = Selection(labels="app in (a,b)", fields="spec.x=1")
    result, server = ask(
        [page("ab", "t1"), page("c")], lambda kube: kube.list(APPLICATIONS.everywhere, select=selection)
    )
    assert [item["metadata"]["name"] for item in result.items] == ["a", "b", "c"]
    assert result.resource_version == "9"
    common = (
        "/apis/argoproj.io/v1alpha1/applications?labelSelector=app+in+%28a%2Cb%29&fieldSelector=spec.x%3D1&limit=500"
    )
    assert [request.target for request in server.requests] == [common, f"{common}&continue=t1"]


def test_a_list_of_metadata_asks_for_nothing_else_and_takes_what_comes() -> None:
    result, server = ask([page("ab", "t1"), page("c")], lambda kube: kube.list_metadata(PODS.everywhere, Named))
    assert [item.metadata.name for item in result.items] == ["a", "b", "c"]
    wanted = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    assert [dict(request.headers)["Accept"] for request in server.requests] == [wanted, wanted]


@pytest.mark.parametrize(
    ("size", "pages"), [(0, MAX_LIST_PAGES), (MAX_LIST_ITEMS // 4, 5)], ids=["empty pages", "large pages"]
)
def test_a_list_without_end_is_refused(size: int, pages: int) -> None:
    endless = [page("x" * size, f"token {number}") for number in range(pages)]
    result, server = ask(endless, lambda kube: kube.list(PODS.everywhere))
    assert isinstance(result, BadAnswer)
    assert result.what == f"the list does not end after {size * pages:,} objects"
    assert len(server.requests) == pages


def test_a_list_whose_snapshot_expired_is_taken_in_one_piece() -> None:
    result, server = ask(
        [page("ab", "t1"), refusal(410, "Expired"), page("abc", version="12")], lambda kube: kube.list(PODS.everywhere)
    )
    assert (len(result.items), result.resource_version) == (3, "12")
    assert "limit" not in server.requests[2].target


def test_a_list_that_expires_even_in_one_piece_is_an_error() -> None:
    result, _ = ask([refusal(410, "Expired"), refusal(410, "Expired")], lambda kube: kube.list(PODS.everywhere))
    assert isinstance(result, Expired)


class Named(TypedObject, frozen=True):
    pass


def test_typed_objects_come_from_get_and_list() -> None:
    result, _ = ask([ok({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {}})], lambda k: k.get(APP, Named))
    assert (result.metadata.name, result.metadata.labels) == ("a", {"x": "y"})
    result, _ = ask([page("ab")], lambda k: k.list(APPLICATIONS.everywhere, Named))
    assert [item.metadata.name for item in result.items] == ["a", "b"]


def test_a_conflict_of_apply_names_the_other_manager_and_the_field() -> None:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl-client-side-apply" using apps/v1 at 2030-01-01T00:00:00Z',
            "field": ".spec.replicas",
        },
        {"reason": "FieldManagerConflict", "message": 'conflict with "argocd-controller"', "field": ".spec.paused"},
        {"reason": "SomethingElse", "message": "x", "field": ".y"},
    ]
    refused = refusal(409, "Conflict", "Apply failed with 2 conflicts", {"causes": causes})
    result, _ = ask([refused], lambda kube: kube.apply(APP, {}))
    assert isinstance(result, Conflict)
    assert result.owners == (
        FieldOwner("kubectl-client-side-apply", ".spec.replicas"),
        FieldOwner("argocd-controller", ".spec.paused"),
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: PODS.named("p"), "needs a namespace", id="no namespace"),
        pytest.param(lambda: NODES.named("n", "x"), "has no namespaces", id="namespace of a cluster-wide kind"),
        pytest.param(lambda: PODS.named("../secrets/s", "n"), "cannot be part of an address", id="a way out"),
        pytest.param(lambda: PODS.named("p", ".."), "cannot be part of an address", id="dots"),
        pytest.param(lambda: PODS.named("p\nq", "n"), "cannot be part of an address", id="two lines"),
        pytest.param(lambda: PODS.named("p" * 254, "n"), "cannot be part of an address", id="long"),
        pytest.param(
            lambda: PODS.named("p", "n").with_subresource("a%2fb"), "cannot be part of an address", id="encoded"
        ),
    ],
)
def test_an_impossible_address_cannot_be_built(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_addresses_read_well() -> None:
    assert str(APP) == "applications.argoproj.io argocd/vault"
    assert str(APP.with_subresource("status")) == "applications.argoproj.io/status argocd/vault"
    assert str(NODES.everywhere) == "nodes"
    assert str(NODES.named("n1")) == "nodes n1"
    assert str(PODS.in_namespace("n")) == "pods n"


def test_a_list_without_an_end_is_an_error() -> None:
    result, _ = ask([page("ab", "t1"), page("ab", "t1")], lambda kube: kube.list(PODS.everywhere))
    assert isinstance(result, BadAnswer)
    assert "list pods at scripted:///api/v1/pods" in str(result)


def test_an_empty_list_of_go_is_empty() -> None:
    nothing = ok({"metadata": {"resourceVersion": "3"}, "items": None})
    result, _ = ask([nothing], lambda kube: kube.list(PODS.everywhere))
    assert (result.items, result.resource_version) == ([], "3")
