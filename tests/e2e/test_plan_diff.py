"""`plan --diff` beside `argocd app diff` on the same commit: the same objects, the same fields, the same values."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.e2e.platforms import Platform, deployment
from tests.testbed import gobuild
from tests.testbed.components import ARGOCD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.testbed.bed import Cluster

NAMESPACE = "diff"
COPY = """#!/bin/sh
for file in "$@"; do printf -- '---\\n' >> "$DIFF_COPY"; cat "$file" >> "$DIFF_COPY"; done
printf -- '---\\n' >> "$DIFF_COPY"
"""
"""What `argocd app diff` calls in place of diff: it keeps both files."""

Fields = dict[str, Any]


@dataclass(frozen=True)
class ArgoCli:
    """Argo CD's own command line, in the network of the node."""

    cluster: Cluster
    folder: Path

    def __call__(self, *arguments: str, **environ: str) -> str:
        command = ["nsenter", f"--target={self.cluster.node_pid}", "--net", "--", str(gobuild.binary(ARGOCD, "argocd"))]
        done = subprocess.run(
            [*command, *arguments, "--config", str(self.folder / "argocd.yaml")],
            env=os.environ | {"HOME": str(self.folder)} | environ,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode in {0, 1}, done.stderr
        return done.stdout

    def login(self) -> str:
        """A token of the administrator."""
        service = self.cluster.get("service", "argocd-server", "-n", "argocd")["spec"]["clusterIP"]
        secret = self.cluster.get("secret", "argocd-initial-admin-secret", "-n", "argocd")["data"]["password"]
        password = subprocess.run(["base64", "-d"], input=secret, capture_output=True, text=True, check=True).stdout
        self("login", service, "--insecure", "--grpc-web", "--username", "admin", "--password", password)
        users = yaml.safe_load((self.folder / "argocd.yaml").read_text())["users"]
        return str(users[0]["auth-token"])

    def diff(self, application: str, revision: str) -> list[tuple[Fields, Fields]]:
        """By object: the fields before and after, flat; empty if it does not exist."""
        script, copy = self.folder / "copy", self.folder / "copied.yaml"
        script.write_text(COPY)
        script.chmod(0o755)
        copy.write_text("")
        self(
            *("app", "diff", application, "--revision", revision, "--grpc-web"),
            KUBECTL_EXTERNAL_DIFF=str(script), DIFF_COPY=str(copy),
        )  # fmt: skip
        documents = copy.read_text().split("---\n")[1:]
        pairs = zip(documents[::3], documents[1::3], strict=False)
        return [(flat(yaml.safe_load(live)), flat(yaml.safe_load(target))) for live, target in pairs]


def flat(value: Any, path: str = "") -> Fields:
    """The leaves by path; items of lists by what Kubernetes merges them by."""
    if isinstance(value, dict) and value:
        rows = [
            (f"[{key}]" if "." in key or "/" in key else f".{key}" if path else key, each)
            for key, each in value.items()
        ]
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        rows = [(f"[{each.get('port', each.get('name', number))}]", each) for number, each in enumerate(value)]
    else:
        return {path: value} if path else {}
    return {name: leaf for key, each in rows for name, leaf in flat(each, path + key).items()}


def differing(before: Fields, after: Fields) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def object_name(fields: Fields) -> tuple[str, str]:
    group = fields["apiVersion"].rpartition("/")[0]
    return f"{group}/{fields['kind']}".lstrip("/"), fields["metadata.name"]


def config(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def service(*ports: dict[str, Any]) -> dict[str, Any]:
    spec = {"selector": {"app": "b"}, "ports": list(ports)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}, "spec": spec}


def secret(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "stringData": data}


def workload(*variables: dict[str, str], **spec: Any) -> dict[str, Any]:
    """The API server writes the quantity in another way, which is no difference."""
    body = deployment("b", **spec)
    body["spec"]["template"]["spec"]["containers"][0] |= {
        "env": list(variables),
        "resources": {"limits": {"cpu": "1000m"}},
    }
    return body


BEFORE = [
    workload({"name": "A", "value": "1"}, {"name": "OLD", "value": "1"}),
    config("b", kept="1", text="one\ntwo\nthree\n", dropped="1"),
    config("gone", a="1"),
    service({"name": "web", "port": 80}),
    secret(key="first-secret"),
]
AFTER = [
    {
        **workload({"name": "A", "value": "2"}, {"name": "NEW", "value": "1"}, replicas=2),
        "metadata": {"name": "b", "labels": {"example.org/tier": "x"}},
    },
    config("b", kept="1", text="one\nTWO\nthree\n", added="1"),
    config("new", a="1"),
    service({"name": "web", "port": 81}, {"name": "more", "port": 82}),
    secret(key="second-secret", other="third-secret"),
]  # fmt: skip


def listed(*items: dict[str, Any]) -> dict[str, str]:
    return {"b/all.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": items})}


@pytest.fixture
def platform(argocd_cluster: Cluster, tmp_path: Path) -> Platform:
    """Deployed; then `a` is scaled by hand, and the next commit changes `b` and moves the pins of all three."""
    found = Platform(argocd_cluster, tmp_path, NAMESPACE, {"a": (), "b": ("a",), "c": ("b",)})
    found.files = listed(*BEFORE)
    found.publish()
    code, report = found.report("deploy")
    assert code == 0, report["failures"]
    argocd_cluster.kubectl("scale", "deployment/a", "-n", NAMESPACE, "--replicas=2")
    found.files = listed(*AFTER)
    found.publish()
    unknown = found.windlass("plan", "--refresh")
    assert "3 to sync (which objects change is not known for 3)" in unknown.stdout, unknown.output
    return found


@pytest.mark.timeout(400)
def test_the_plan_lists_the_fields_that_argo_cd_lists(platform: Platform, tmp_path: Path) -> None:
    cluster = platform.cluster
    cli, options = ArgoCli(cluster, tmp_path), ("--diff", "--argocd-token", str(tmp_path / "token"))
    (tmp_path / "token").write_text(cli.login() + "\n")

    since = len(cluster.audit())
    told = platform.windlass("plan", *options)
    print(told.stdout)
    assert told.code == 0, told.output
    assert "3 to sync (2 change, 1 only moves its pin)" in told.stdout
    assert "-secret" not in told.output
    assert platform.writes(since) == []

    _, report = platform.report("plan", *options)
    ours, commit = {each["name"]: each for each in report["changes"]}, report["steps"][0]["revisions"][0]
    for name, changed in (("a", 1), ("b", 5), ("c", 0)):
        assert_same(ours[name]["objects"], cli.diff(platform.full(name), commit), changed)
    [keys] = [each["fields"] for each in ours["b"]["objects"] if each["kind"] == "Secret"]
    assert keys == [{"path": "data.other", "before": None, "after": "(hidden)"}]

    use_account_with_printed_rights(platform, tmp_path)
    _, again = platform.report("plan", *options)
    assert again["changes"] == report["changes"]
    (tmp_path / "token").write_text("of-another-argo-cd")
    refused = platform.windlass("plan", *options)
    assert "Argo CD does not accept the token" in refused.stdout, refused.output


def use_account_with_printed_rights(platform: Platform, folder: Path) -> None:
    """A service account is known by its Authorization header, which must not be taken for that of Argo CD."""
    cluster = platform.cluster
    cluster.kubectl("create", "serviceaccount", "planner", "-n", NAMESPACE)
    rights = platform.windlass("rbac", "--for", "plan", "--subject", f"system:serviceaccount:{NAMESPACE}:planner")
    cluster.kubectl("apply", "--filename=-", input=rights.stdout)
    shown = json.loads(cluster.kubectl("config", "view", "--raw", "--output=json"))
    token = cluster.kubectl("create", "token", "planner", "-n", NAMESPACE).strip()
    shown["users"] = [{"name": user["name"], "user": {"token": token}} for user in shown["users"]]
    platform.kubeconfig = folder / "planner-kubeconfig"
    platform.kubeconfig.write_text(json.dumps(shown))


def assert_same(ours: list[dict[str, Any]], theirs: list[tuple[Fields, Fields]], count: int) -> None:
    """Argo CD leaves Secrets out; a field of ours stands for all below it."""
    mine = {(each["kind"], each["name"]): each for each in ours if each["kind"] != "Secret"}
    assert {object_name(before or after) for before, after in theirs} == mine.keys()
    assert len(mine) == count
    for before, after in theirs:
        own = mine[object_name(before or after)]
        assert own["effect"] == ("create" if not before else "remove" if not after else "update")
        if own["effect"] != "update":
            continue
        changed = {path for path in differing(before, after) if not path.startswith("metadata.managedFields")}
        listed = {each["path"].partition(" (line")[0]: each for each in own["fields"]}
        assert {name for path in changed for name in listed if path.startswith(name)} == listed.keys(), (changed, own)
        assert {path for path in changed if any(path.startswith(name) for name in listed)} == changed, (changed, own)
        for path in changed & {name for name, each in listed.items() if "(line" not in each["path"]}:
            values = (before.get(path), after.get(path))
            assert (listed[path]["before"], listed[path]["after"]) == tuple(v if v is None else str(v) for v in values)
