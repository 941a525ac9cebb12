"""What an import reads from Argo CD's objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import typed_object
from tests.core.platform.drafting.inventories import app, appset
from windlass.argo.cd import ownership
from windlass.core.platform.drafting.ownership import LabelExpression, ObservedApplication, ObservedApplicationSet

ID = "argocd.argoproj.io/tracking-id"


def made(spec: Any = None, status: Any = None, **metadata: Any) -> ownership.ApplicationManifest:
    body = {"metadata": {"name": "web", "namespace": "argocd", **metadata}, "spec": spec, "status": status}
    return typed_object(body, ownership.ApplicationManifest)


def row(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"group": "argoproj.io", "version": "v1alpha1", "kind": kind, "namespace": "argocd", "name": name, **more}


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (made(), ObservedApplication(app("web"))),
        (made(status={"resources": None}, spec={"project": ""}), ObservedApplication(app("web"))),
        (made(spec={"project": "team"}, labels={"x": "y"}), ObservedApplication(app("web"), "team", {"x": "y"})),
        (made(annotations={ownership.SYNC_WAVE_ANNOTATION: "-3"}), ObservedApplication(app("web"), sync_wave=-3)),
        (made(annotations={ownership.SYNC_WAVE_ANNOTATION: "soon"}), ObservedApplication(app("web"))),
        (
            made(annotations={"windlass.dev/depends-on": "a, b"}),
            ObservedApplication(app("web"), depends_on=("a", "b")),
        ),
        (made(annotations={"windlass.dev/depends-on": ""}), ObservedApplication(app("web"), depends_on=())),
        (
            made(annotations={ID: "root:argoproj.io/Application:argocd/web"}),
            ObservedApplication(app("web"), tracked_by="root"),
        ),
        (
            made(annotations={ID: "team_root:argoproj.io/Application:argocd/web"}),
            ObservedApplication(app("web"), tracked_by="team_root"),
        ),
        (made(annotations={ID: "root:argoproj.io/Application:argocd/copied"}), ObservedApplication(app("web"))),
        (
            made(labels={ownership.INSTANCE_LABEL: "root"}),
            ObservedApplication(app("web"), labels={ownership.INSTANCE_LABEL: "root"}, tracked_by="root"),
        ),
        (
            made(
                ownerReferences=[
                    {"kind": "Thing", "name": "t", "uid": "1"},
                    {"kind": "ApplicationSet", "name": "tenants", "uid": "2"},
                ]
            ),
            ObservedApplication(app("web"), owner=appset("tenants")),
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
            ObservedApplication(app("web"), listed_children=frozenset({app("a"), app("b"), appset("team/s")})),
        ),
    ],
)
def test_an_application(application: ownership.ApplicationManifest, expected: ObservedApplication) -> None:
    assert ownership.parse_application_manifest(application) == expected


def test_where_argo_cd_is() -> None:
    assert ownership.controller_namespace(made()) == ""
    assert ownership.controller_namespace(made(status={"controllerNamespace": "gitops"})) == "gitops"


def test_a_parent_that_shows_the_health_of_its_children() -> None:
    shown = row("Application", "a", health={"status": "Healthy"})
    assert ownership.reports_child_health(made(status={"resources": [shown]}))
    for other in (row("Application", "a"), {**shown, "kind": "AppProject"}, {**shown, "group": "apps"}):
        assert not ownership.reports_child_health(made(status={"resources": [other]}))


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
    assert ownership.has_application_health_check(settings) is expected


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
                (LabelExpression("env", frozenset({"dev", "test"})),),
                (LabelExpression("env", frozenset({"dev"}), is_negated=True), LabelExpression("env", frozenset())),
                (),
            ),
        ),
    ],
)
def test_the_steps_of_a_set(spec: Any, steps: tuple[tuple[LabelExpression, ...], ...]) -> None:
    metadata = {"name": "tenants", "namespace": "argocd", "annotations": {ownership.SYNC_WAVE_ANNOTATION: "2"}}
    generator = typed_object({"metadata": metadata, "spec": spec}, ownership.ApplicationSetManifest)
    assert ownership.parse_application_set(generator) == ObservedApplicationSet(appset("tenants"), 2, "", steps)
