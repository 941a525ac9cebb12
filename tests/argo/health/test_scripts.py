"""Which check judges which kind, and what our own checks say."""

from __future__ import annotations

from typing import Any

import pytest

from windlass.argo.health.scripts import HealthScripts, embedded_scripts, mounted_scripts, parse_config_map
from windlass.core.platform.model.snapshots import ResourceKind
from windlass.lua.interpreter import run_script, syntax_error

DOCUMENT = """
a.io/Thing:
  health.lua: old
  health.lua.useOpenLibs: true
b.io/Thing: {health.lua: of b}
"*.c.io/*": {health.lua: all of c}
Service: {health.lua: core}
d.io/Thing: {ignoreDifferences: x}
e.io/Thing: {health.lua: 3}
f.io/Thing: text
"""


def text(scripts: HealthScripts, kind: str) -> str | None:
    group, _, name = kind.rpartition("/")
    found = scripts.find(ResourceKind(group, name))
    return found.text if found else None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("a.io/Thing", "new"),
        ("b.io/Thing", "of b"),
        ("x.c.io/Any", "all of c"),
        ("c.io/Any", None),
        ("Service", "core"),
        ("Pod", "pod"),
        ("g.io/thing", "small"),
        ("d.io/Thing", None),
        ("e.io/Thing", None),
        ("f.io/Thing", None),
        ("h.io/Thing", None),
    ],
)
def test_the_config_map_as_argo_cd_reads_it(kind: str, expected: str | None) -> None:
    data = {
        "resource.customizations": DOCUMENT,
        "resource.customizations.health.a.io_Thing": "new",
        "resource.customizations.health.g.io_thing": "small",
        "resource.customizations.health.Pod": "pod",
        "resource.customizations.health.h.io_Thing": "",
        "resource.customizations.actions.h.io_Thing": "not health",
        "url": "https://argocd.test",
    }
    assert text(parse_config_map(data), kind) == expected


@pytest.mark.parametrize("document", ["", " \n", "a: [", "just words", "- a\n- b"])
def test_a_document_that_is_none_has_no_checks(document: str) -> None:
    assert parse_config_map({"resource.customizations": document}) == HealthScripts()


def test_mounted_files() -> None:
    found = mounted_scripts({("a.io", "Thing"): "x"})
    assert text(found, "a.io/Thing") == "x"
    assert text(found, "Thing") is None


def test_our_own_are_lua() -> None:
    kinds = {"ceph.rook.io/CephCluster", "acid.zalan.do/postgresql", "argoproj.io/Application"}
    assert {str(kind) for kind in embedded_scripts().exact} == kinds
    for script in embedded_scripts().exact.values():
        assert syntax_error(script.text) is None


def ceph(phase: str | None, health: str | None, **details: Any) -> dict[str, Any]:
    rows = {name: {"message": message, "severity": "HEALTH_WARN"} for name, message in details.items()}
    return {"status": {"phase": phase, "ceph": {"health": health, "details": rows or None}}}


def postgres(status: str | None) -> dict[str, Any]:
    return {"status": {"PostgresClusterStatus": status}}


SOURCE = {"repoURL": "https://git.test", "path": "web", "targetRevision": "main"}
HEALTHY = {"status": "Healthy"}


def helm(values: dict[str, Any]) -> dict[str, Any]:
    return {**SOURCE, "helm": {"valuesObject": values}}


def app(spec: dict[str, Any], compared: dict[str, Any], **more: Any) -> dict[str, Any]:
    status = {"health": HEALTHY, "sync": {"comparedTo": compared}, **more}
    return {"spec": spec, "status": status}


@pytest.mark.parametrize(
    ("kind", "item", "expected", "message"),
    [
        ("ceph.rook.io/CephCluster", ceph("Ready", "HEALTH_OK"), "Healthy", ""),
        ("ceph.rook.io/CephCluster", ceph("Ready", "HEALTH_WARN"), "Degraded", "HEALTH_WARN"),
        (
            "ceph.rook.io/CephCluster",
            ceph("Ready", "HEALTH_ERR", OSD_DOWN="1 osds down", MON_DOWN="1/3 mons down"),
            "Degraded",
            "HEALTH_ERR: MON_DOWN: 1/3 mons down; OSD_DOWN: 1 osds down",
        ),
        ("ceph.rook.io/CephCluster", ceph("Failure", None), "Degraded", "its phase is Failure"),
        ("ceph.rook.io/CephCluster", ceph("Ready", None), "Progressing", "its phase is Ready, Ceph says nothing"),
        (
            "ceph.rook.io/CephCluster",
            ceph("Progressing", "HEALTH_OK"),
            "Progressing",
            "its phase is Progressing, Ceph says HEALTH_OK",
        ),
        ("ceph.rook.io/CephCluster", {}, "Progressing", "its phase is not told, Ceph says nothing"),
        ("acid.zalan.do/postgresql", postgres("Running"), "Healthy", ""),
        ("acid.zalan.do/postgresql", postgres("SyncFailed"), "Degraded", "the operator says SyncFailed"),
        ("acid.zalan.do/postgresql", postgres("Invalid"), "Degraded", "the operator says Invalid"),
        ("acid.zalan.do/postgresql", postgres("Updating"), "Progressing", "the operator says Updating"),
        ("acid.zalan.do/postgresql", {}, "Progressing", "the operator says nothing yet"),
        ("argoproj.io/Application", app({"source": SOURCE}, {"source": SOURCE}), "Healthy", ""),
        (
            "argoproj.io/Application",
            app(
                {"source": {**SOURCE, "helm": {}, "chart": ""}}, {"source": {**SOURCE, "directory": {"recurse": False}}}
            ),
            "Healthy",
            "",
        ),
        ("argoproj.io/Application", app({"sources": [SOURCE]}, {"sources": [SOURCE], "source": {}}), "Healthy", ""),
        (
            "argoproj.io/Application",
            app({"source": SOURCE}, {"source": SOURCE}, health={"status": "Degraded", "message": "no pods"}),
            "Degraded",
            "no pods",
        ),
        *(
            ("argoproj.io/Application", item, "Progressing", "Argo CD has not compared it with its present sources yet")
            for item in (
                app({"source": {**SOURCE, "targetRevision": "v2"}}, {"source": SOURCE}),
                app({"source": SOURCE}, {"source": {**SOURCE, "helm": {"values": "x"}}}),
                app({"source": helm({"a": ""})}, {"source": helm({})}),
                app({"source": helm({})}, {"source": helm({"a": ""})}),
                app({"sources": [SOURCE, SOURCE]}, {"sources": [SOURCE]}),
                app({"sources": [SOURCE]}, {"source": SOURCE}),
                {"spec": {"source": SOURCE}, "status": {"health": HEALTHY}},
                {"spec": {"source": SOURCE}},
            )
        ),
        (
            "argoproj.io/Application",
            app({"source": SOURCE}, {"source": SOURCE}, operationState={"phase": "Running"}),
            "Progressing",
            "an operation runs",
        ),
        (
            "argoproj.io/Application",
            {**app({"source": SOURCE}, {"source": SOURCE}), "operation": {"sync": {}}},
            "Progressing",
            "an operation was asked for",
        ),
        (
            "argoproj.io/Application",
            app({"source": SOURCE}, {"source": SOURCE}, health=None),
            "Progressing",
            "Argo CD has not told its health yet",
        ),
    ],
)
def test_our_own_checks(kind: str, item: dict[str, Any], expected: str, message: str) -> None:
    script = text(embedded_scripts(), kind)
    assert script
    found = run_script(script, item)
    assert (found.get("status"), found.get("message", "")) == (expected, message), found
