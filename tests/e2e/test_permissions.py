"""Each action runs as a service account with the rights that `windlass rbac` prints for it, and with nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.platforms import Platform

if TYPE_CHECKING:
    from pathlib import Path

    from tests.testbed.bed import Cluster

NAMESPACE = "narrow"
ACTIONS = ("deploy", "plan", "validate", "teardown")


def account(action: str) -> str:
    return f"system:serviceaccount:{NAMESPACE}:{action}"


def kubeconfig(cluster: Cluster, folder: Path, action: str) -> Path:
    """Of a new service account with the name of the action."""
    cluster.kubectl("create", "serviceaccount", action, "-n", NAMESPACE)
    token = cluster.kubectl("create", "token", action, "-n", NAMESPACE).strip()
    shown = json.loads(cluster.kubectl("config", "view", "--raw", "--output=json"))
    shown["users"] = [{"name": user["name"], "user": {"token": token}} for user in shown["users"]]
    file = folder / f"{action}-kubeconfig"
    file.write_text(json.dumps(shown))
    return file


@pytest.mark.timeout(400)
def test_the_printed_rights_suffice_and_without_them_they_are_named(argocd_cluster: Cluster, tmp_path: Path) -> None:
    cluster = argocd_cluster
    platform = Platform(cluster, tmp_path, "rights", {"a": (), "b": ("a",)})
    platform.publish()
    file = tmp_path / "dag.yaml"
    described = json.loads(file.read_text())
    described["spec"]["stacks"][0]["applications"][0]["critical"] = True
    file.write_text(json.dumps(described))
    cluster.kubectl("create", "namespace", NAMESPACE)
    files = {action: kubeconfig(cluster, tmp_path, action) for action in ACTIONS}

    for action in ACTIONS:
        platform.kubeconfig = files[action]
        refused = platform.windlass(action, *(("--confirm", "development") if action == "teardown" else ()))
        assert refused.code == 1, refused.output
        assert f"user {account(action)} may not " in refused.stderr
        assert "applications.argoproj.io in namespace argocd (403 Forbidden)" in refused.stderr
        assert f"$ windlass rbac --for {action} " in refused.stderr
        assert "reject" not in refused.stderr

    for action in ACTIONS:
        printed = platform.windlass("rbac", "--for", action, "--subject", account(action))
        assert printed.code == 0, printed.output
        cluster.apply(printed.stdout)
    seen = len(cluster.audit())
    for action in ACTIONS:
        platform.kubeconfig = files[action]
        ended = platform.teardown() if action == "teardown" else platform.windlass(action)
        assert ended.code == 0, ended.output
    users = {account(action) for action in ACTIONS}
    records = [each for each in cluster.audit()[seen:] if each.user in users]
    assert {each.user for each in records} == users
    assert [each for each in records if each.code == 403] == []
