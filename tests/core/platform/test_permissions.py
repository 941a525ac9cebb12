"""The table of rights, the YAML that is printed from it, and the page that shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from windlass.core.platform.permissions import (
    RIGHTS,
    PermissionRequest,
    RightsFor,
    permissions_yaml,
    readable_resource,
)
from windlass.errors import InvalidInput

PAGE = Path(__file__).parents[3] / "docs" / "permissions.md"
ACCOUNT = "system:serviceaccount:ci:deployer"


def printed(*actions: RightsFor, **request: Any) -> list[dict[str, Any]]:
    asked = PermissionRequest(**{"subject": ACCOUNT, "argocd_namespace": "argocd", **request})
    return list(yaml.safe_load_all(permissions_yaml(actions, asked)))


def places(documents: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace", "")) for each in documents]


def rules(documents: list[dict[str, Any]], resource: str, verb: str) -> list[str]:
    """The namespaces in which this is permitted; an empty one is the whole cluster."""
    return [
        each["metadata"].get("namespace", "")
        for each in documents
        for rule in each.get("rules", ())
        if resource in rule["resources"] and verb in rule["verbs"]
    ]


def table() -> str:
    rows = ["| needed by | API group | resources | verbs | where | why |", "|---|---|---|---|---|---|"]
    for right in RIGHTS:
        names = f" named {', '.join(right.names)}".replace("{argocd}", "as Argo CD's namespace") if right.names else ""
        actions, resources = ", ".join(right.actions), ", ".join(f"`{each}`" for each in right.resources)
        group = f"`{right.group}`" if right.group else "core"
        rows.append(
            f"| {actions} | {group} | {resources}{names} | {', '.join(right.verbs)} | {right.place} | {right.why} |"
        )
    return "\n".join(rows) + "\n"


def test_the_page_shows_the_table() -> None:
    """After a change: python -m tests.core.platform.test_permissions writes it anew."""
    assert PAGE.read_text().endswith("\n" + table())


def test_each_action_gets_roles_of_its_own_and_bindings_to_the_account() -> None:
    documents = printed(RightsFor.DEPLOY, RightsFor.VALIDATE)
    assert places(documents) == [
        (kind, f"windlass-{action}", namespace)
        for action in ("deploy", "validate")
        for kind, namespace in (
            ("ClusterRole", ""),
            ("ClusterRoleBinding", ""),
            ("Role", "argocd"),
            ("RoleBinding", "argocd"),
        )
    ]
    account = {"kind": "ServiceAccount", "name": "deployer", "namespace": "ci"}
    for role, binding in zip(documents[::2], documents[1::2], strict=True):
        assert role["rules"]
        assert binding["roleRef"]["kind"] == role["kind"]
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        assert binding["subjects"] == [account]


@pytest.mark.parametrize("name", ["bob", "o'\"neil: {}\n- x", "system:masters"])
def test_any_other_name_is_that_of_a_user(name: str) -> None:
    group = "rbac.authorization.k8s.io"
    assert printed(RightsFor.WAIT, subject=name)[1]["subjects"] == [{"apiGroup": group, "kind": "User", "name": name}]


@pytest.mark.parametrize("name", ["system:serviceaccount:", "system:serviceaccount:ci", "system:serviceaccount:a:b:c"])
def test_half_a_service_account_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="names no service account"):
        printed(RightsFor.DEPLOY, subject=name)


def test_applications_of_one_namespace_are_read_and_written_there() -> None:
    documents = printed(RightsFor.DEPLOY, argocd_namespace="gitops", application_namespaces=frozenset({"gitops"}))
    assert rules(documents, "applications", "watch") == rules(documents, "applications", "patch") == ["gitops"]
    [names] = [rule["resourceNames"] for rule in documents[0]["rules"] if rule["resources"] == ["namespaces"]]
    assert names == ["gitops", "kube-system"]


def test_applications_of_several_namespaces_are_read_in_the_whole_cluster_and_written_where_they_are() -> None:
    documents = printed(RightsFor.DEPLOY, application_namespaces=frozenset({"team", "other"}))
    assert rules(documents, "applications", "watch") == [""]
    assert rules(documents, "applications", "patch") == ["argocd", "other", "team"]
    assert rules(documents, "applications", "create") == ["argocd"]


def test_kinds_with_a_check_are_read_and_secrets_are_not() -> None:
    assert readable_resource("ceph.rook.io", "CephCluster") == ("ceph.rook.io", "*")
    assert (readable_resource("", "Service"), readable_resource("", "Endpoints")) == (
        ("", "services"),
        ("", "endpoints"),
    )
    checked = frozenset({("things.test", "*"), ("", "services")})
    for action in RightsFor:
        documents = printed(action, checked_resources=checked)
        reads = {RightsFor.TEARDOWN, RightsFor.IMPORT}
        assert rules(documents, "services", "get") == ([] if action in reads else [""])
        wide = [rule for each in documents for rule in each.get("rules", ()) if "*" in rule["resources"]]
        assert all(set(rule["verbs"]) == {"get", "list"} for rule in wide)
        if action is not RightsFor.TEARDOWN:
            assert rules(documents, "secrets", "get") == []
            assert all(rule["apiGroups"] not in ([""], ["*"]) for rule in wide)


def test_what_only_looks_cannot_write() -> None:
    for action in (RightsFor.VALIDATE, RightsFor.PLAN, RightsFor.WAIT, RightsFor.IMPORT):
        verbs = {verb for each in printed(action) for rule in each.get("rules", ()) for verb in rule["verbs"]}
        assert verbs <= {"get", "list", "watch"}


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text().partition("| needed by |")[0] + table())
