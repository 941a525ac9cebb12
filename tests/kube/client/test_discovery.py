"""Discovery: aggregated, group by group, and with a part that does not answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.kube.scripted_server import ask, ok, refusal
from windlass.kube.api_errors import BadAnswer, ConnectionLost
from windlass.kube.client.discovery import Discovery
from windlass.kube.client.resources import Resource
from windlass.kube.transport.transports import Response

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
PODS = Resource("", "v1", "pods", "Pod", True, frozenset({"get", "list"}))
NODES = Resource("", "v1", "nodes", "Node", False, frozenset({"get"}))
APPS = Resource("argoproj.io", "v1alpha1", "applications", "Application", True, frozenset({"get"}))


def aggregated_group(name: str, version: str, *resources: dict[str, Any], freshness: str = "Current") -> dict[str, Any]:
    return {
        "metadata": {"name": name} if name else {"creationTimestamp": None},
        "versions": [{"version": version, "resources": list(resources), "freshness": freshness}],
    }


def aggregated_resource(resource: Resource) -> dict[str, Any]:
    return {
        "resource": resource.plural,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "verbs": sorted(resource.verbs),
        "subresources": [{"subresource": "status", "responseKind": None, "verbs": ["get"]}],
    }


def test_aggregated_discovery_takes_two_requests() -> None:
    core = {"items": [aggregated_group("", "v1", aggregated_resource(PODS), aggregated_resource(NODES))]}
    groups = [aggregated_group("argoproj.io", "v1alpha1", aggregated_resource(APPS))]
    stale = aggregated_group("metrics.k8s.io", "v1beta1", freshness="Stale")
    answers = [ok(core, Content_Type=AGGREGATED), ok({"items": [*groups, stale]}, Content_Type=AGGREGATED)]
    result, server = ask(answers, lambda kube: kube.discover())
    assert result == Discovery((PODS, NODES, APPS), ("metrics.k8s.io/v1beta1",))
    assert [request.target for request in server.requests] == ["/api", "/apis"]
    assert "g=apidiscovery.k8s.io;v=v2;" in dict(server.requests[0].headers)["Accept"]


def plain_resources(*resources: Resource) -> Response:
    rows = [{"name": r.plural, "kind": r.kind, "namespaced": r.namespaced, "verbs": sorted(r.verbs)} for r in resources]
    return ok({"resources": [*rows, {"name": "pods/log", "kind": "Pod", "namespaced": True, "verbs": ["get"]}]})


def test_a_server_without_aggregation_is_asked_group_by_group_and_a_broken_one_is_named() -> None:
    groups = [
        {"name": "argoproj.io", "versions": [{"groupVersion": "argoproj.io/v1alpha1"}]},
        {"name": "metrics.k8s.io", "versions": [{"groupVersion": "metrics.k8s.io/v1beta1"}]},
    ]
    answers = [
        ok({"versions": ["v1"]}),
        plain_resources(PODS, NODES),
        ok({"groups": groups}),
        plain_resources(APPS),
        *[refusal(503)] * 5,
    ]
    result, _ = ask(answers, lambda kube: kube.discover())
    assert result == Discovery((PODS, NODES, APPS), ("metrics.k8s.io/v1beta1",))


def test_kinds_are_found_in_the_preferred_version_or_the_named_one() -> None:
    newer = Resource("apps", "v2", "widgets", "Widget")
    older = Resource("apps", "v1", "widgets", "Widget")
    found = Discovery((newer, older))
    assert found.find("Widget", "apps") == newer
    assert found.find("Widget", "apps", "v1") == older
    assert found.find("Widget") is None


def test_an_object_finds_its_address() -> None:
    found = Discovery((PODS, NODES, APPS))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "a"}}
    assert found.ref_to(pod) == PODS.named("p", "n")
    assert found.ref_to(node) == NODES.named("n1")
    assert found.ref_to(app) == APPS.named("a", "default")
    assert found.ref_to({**app, "kind": "Unknown"}) is None


def test_something_else_than_an_api_server_is_named() -> None:
    result, _ = ask([Response(200, {"Content-Type": "text/html"}, b"<html>")], lambda kube: kube.discover())
    assert isinstance(result, BadAnswer)
    assert "/api: this is no API discovery" in str(result)


def test_trouble_with_the_root_is_raised() -> None:
    result, _ = ask([ConnectionLost("gone")] * 5, lambda kube: kube.discover())
    assert isinstance(result, ConnectionLost)


def test_nulls_and_a_kind_left_out_hide_nothing_else() -> None:
    subresources_only = {"resource": "proxies", "scope": "Namespaced", "verbs": None, "responseKind": None}
    no_verbs = {"resource": "nodes", "scope": "Cluster", "verbs": None, "responseKind": {"kind": "Node"}}
    core = {"items": [aggregated_group("", "v1", aggregated_resource(PODS), subresources_only, no_verbs)]}
    answers = [ok(core, Content_Type=AGGREGATED), ok({"items": None}, Content_Type=AGGREGATED)]
    result, _ = ask(answers, lambda kube: kube.discover())
    assert result == Discovery((PODS, Resource("", "v1", "nodes", "Node", False)))
    result, _ = ask([ok({"versions": ["v1"]}), ok({"resources": None}), ok({"groups": None})], lambda k: k.discover())
    assert result == Discovery((), ())


def test_a_group_cannot_name_the_path_of_another() -> None:
    """The server of one group would have us read, and delete, in the others."""
    names = ("../../v1/secrets", "pods?watch=1", "pods#x", "a b", "%2e%2e", "", "x\ny")
    plurals = [replace(APPS, plural=name) for name in names]
    groups = [aggregated_group("argoproj.io", "v1alpha1", *map(aggregated_resource, [*plurals, APPS]))]
    groups += [aggregated_group("x/../y", "v1", aggregated_resource(APPS))]
    answers = [ok({"items": []}, Content_Type=AGGREGATED), ok({"items": groups}, Content_Type=AGGREGATED)]
    result, _ = ask(answers, lambda kube: kube.discover())
    assert result == Discovery((APPS,), ("argoproj.io/v1alpha1", "x/../y/v1"))
