"""What an import reads from Argo CD's objects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.core.platform.drafting.inventories import app, appset
from windlass.argo.cd import ownership
from windlass.core.platform.drafting.ownership import FoundApplication, FoundSet, Match

ID = "argocd.argoproj.io/tracking-id"


def made(spec: Any = None, status: Any = None, **metadata: Any) -> ownership.Made:
    body = {"metadata": {"name": "web", "namespace": "argocd", **metadata}, "spec": spec, "status": status}
    return msgspec.convert(body, ownership.Made)


def row(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"group": "argoproj.io", "version": "v1alpha1", "kind": kind, "namespace": "argocd", "name": name, **more}


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (made(), FoundApplication(app("web"))),
        (made(status={"resources": None}, spec={"project": ""}), FoundApplication(app("web"))),
        (made(spec={"project": "team"}, labels={"x": "y"}), FoundApplication(app("web"), "team", {"x": "y"})),
        (made(annotations={ownership.WAVE: "-3"}), FoundApplication(app("web"), wave=-3)),
        (made(annotations={ownership.WAVE: "soon"}), FoundApplication(app("web"))),
        (
            made(annotations={"windlass.dev/depends-on": "a, b"}),
            FoundApplication(app("web"), depends_on=("a", "b")),
        ),
        (made(annotations={"windlass.dev/depends-on": ""}), FoundApplication(app("web"), depends_on=())),
        (
            made(annotations={ID: "root:argoproj.io/Application:argocd/web"}),
            FoundApplication(app("web"), tracked_by="root"),
        ),
        (
            made(annotations={ID: "team_root:argoproj.io/Application:argocd/web"}),
            FoundApplication(app("web"), tracked_by="team_root"),
        ),
        (made(annotations={ID: "root:argoproj.io/Application:argocd/copied"}), FoundApplication(app("web"))),
        (
            made(labels={ownership.INSTANCE: "root"}),
            FoundApplication(app("web"), labels={ownership.INSTANCE: "root"}, tracked_by="root"),
        ),
        (
            made(
                ownerReferences=[
                    {"kind": "Thing", "name": "t", "uid": "1"},
                    {"kind": "ApplicationSet", "name": "tenants", "uid": "2"},
                ]
            ),
            FoundApplication(app("web"), owner=appset("tenants")),
        ),
        (
            made(
                status={
                    "resources": [
                        row("Application", "a"),
                        row("ApplicationSet", "s", namespace="team"),
                        row("Application", "b", namespace=None),
                        row("AppProject", "p"),
                        row("Application", "other", group="app.k8s.io"),
                        row("Application", ""),
                    ]
                }
            ),
            FoundApplication(app("web"), lists=frozenset({app("a"), app("b"), appset("team/s")})),
        ),
    ],
)
def test_an_application(application: ownership.Made, expected: FoundApplication) -> None:
    assert ownership.found_application(application) == expected


def test_where_argo_cd_is() -> None:
    assert ownership.home_of(made()) == ""
    assert ownership.home_of(made(status={"controllerNamespace": "gitops"})) == "gitops"


def test_a_parent_that_shows_the_health_of_its_children() -> None:
    shown = row("Application", "a", health={"status": "Healthy"})
    assert ownership.shows_health_of_children(made(status={"resources": [shown]}))
    for other in (row("Application", "a"), {**shown, "kind": "AppProject"}, {**shown, "group": "apps"}):
        assert not ownership.shows_health_of_children(made(status={"resources": [other]}))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, False),
        ({"resource.customizations.health.argoproj.io_Application": "return {}"}, True),
        ({"resource.customizations.health.argoproj.io_*": "return {}"}, True),
        ({"resource.customizations.health.argoproj.io_Application": ""}, False),
        ({"resource.customizations.health.apps_Deployment": "return {}"}, False),
        ({"resource.customizations": "argoproj.io/Application:\n  health.lua: |\n    return {}\n"}, True),
        ({"resource.customizations": "apps/Deployment:\n  health.lua: |\n    return {}\n"}, False),
    ],
)
def test_settings_with_a_health_check_of_applications(settings: dict[str, str], expected: bool) -> None:
    assert ownership.has_application_health(settings) is expected


def expression(operator: str, *values: str) -> dict[str, Any]:
    return {"key": "env", "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("spec", "steps"),
    [
        (None, ()),
        ({"strategy": {"type": "AllAtOnce"}}, ()),
        ({"strategy": {"rollingSync": {"steps": [{"matchExpressions": [expression("In", "dev")]}]}}}, ()),
        ({"strategy": {"type": "RollingSync", "rollingSync": {"steps": None}}}, ()),
        (
            {
                "strategy": {
                    "type": "RollingSync",
                    "rollingSync": {
                        "steps": [
                            {"matchExpressions": [expression("In", "dev", "test")], "maxUpdate": "50%"},
                            {"matchExpressions": [expression("NotIn", "dev"), expression("Exists")]},
                            {"maxUpdate": 0},
                        ]
                    },
                }
            },
            (
                (Match("env", frozenset({"dev", "test"})),),
                (Match("env", frozenset({"dev"}), is_negated=True), Match("env", frozenset())),
                (),
            ),
        ),
    ],
)
def test_the_steps_of_a_set(spec: Any, steps: tuple[tuple[Match, ...], ...]) -> None:
    metadata = {"name": "tenants", "namespace": "argocd", "annotations": {ownership.WAVE: "2"}}
    generator = msgspec.convert({"metadata": metadata, "spec": spec}, ownership.Generator)
    assert ownership.found_set(generator) == FoundSet(appset("tenants"), 2, "", steps)
