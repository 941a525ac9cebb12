"""A small platform from git on the real thing: a root chart, its Applications, and the two files that describe it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes import Ended, windlass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.testbed.bed import AuditRecord, Cluster

CASCADE = "resources-finalizer.argocd.argoproj.io"
HERE = "https://kubernetes.default.svc"
LEVELS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("a1", "a2", "a3"), ()),
    "b1": ("a1",), "b2": ("a1", "a2"), "b3": ("a3",),
    "c1": ("b1",), "c2": ("b2", "b3"), "c3": ("b3",),
    "d1": ("c1", "c2"), "d2": ("c2",), "d3": ("c3",),
}  # fmt: skip
"""Twelve applications in four levels, and what each waits for."""


def deployment(name: str, seconds: float = 0, *, needs_config: str = "", **more: Any) -> dict[str, Any]:
    """Ready after so many seconds, and not before a ConfigMap is there if it needs one."""
    script = f"sleep {seconds}; touch /tmp/ready; sleep 100000"
    probe = {"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 1}
    container: dict[str, Any] = {
        "name": "main",
        "image": "busybox:1",
        "command": ["sh", "-c", script],
        "readinessProbe": probe,
    }
    if needs_config:
        container["envFrom"] = [{"configMapRef": {"name": needs_config}}]
    pod = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            **more,
        },
    }


def source(url: str, path: str, revision: str = "main") -> dict[str, Any]:
    return {"repoURL": url, "path": path, "targetRevision": revision}


def application(name: str, source: dict[str, Any], namespace: str, policy: dict[str, Any]) -> dict[str, Any]:
    """One of Argo CD's, in its own namespace; `namespace` is where its objects go."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "finalizers": [CASCADE]},
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": HERE, "namespace": namespace},
            "syncPolicy": {**policy, "syncOptions": ["CreateNamespace=true"]},
        },
    }


def application_set(name: str, elements: tuple[str, ...], template: dict[str, Any]) -> dict[str, Any]:
    """An Application for each element, which stands where the template says {{name}}."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "generators": [{"list": {"elements": [{"name": each} for each in elements]}}],
            "template": {"metadata": {"name": template["metadata"]["name"]}, "spec": template["spec"]},
        },
    }


@dataclass
class Platform:
    """In a repository and a namespace of its own name."""

    cluster: Cluster
    folder: Path
    name: str
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: LEVELS)
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By application: another Deployment than the usual one."""

    revision: str = "main"
    """What the root follows."""
    files: dict[str, str] = field(default_factory=dict)
    """More files of the repository, or other contents for some: path to content."""
    environment: str = "development"
    kubeconfig: Path | None = None
    """Of another user than the administrator."""

    def publish(self) -> str:
        files = {"root/Chart.yaml": "apiVersion: v2\nname: root\nversion: 1.0.0\n"}
        for name in self.needs:
            files[f"root/templates/{name}.yaml"] = json.dumps(self._application(name))
            files[f"{name}/all.json"] = json.dumps(self.changes.get(name) or deployment(name))
        commit = self.cluster.git.publish(self.name, {**files, **self.files})
        self.describe()
        return commit

    def describe(self) -> None:
        """In the two files that the command reads."""
        (self.folder / "environment.yaml").write_text(json.dumps(self._environment()))
        (self.folder / "dag.yaml").write_text(json.dumps(self._dag()))

    def _application(self, name: str) -> dict[str, Any]:
        found = source(self.cluster.git.url(self.name), name, "{{ .Values.targetRevision }}")
        return application(self.full(name), found, self.name, {})

    def full(self, name: str) -> str:
        return f"{self.name}-{name}"

    def _environment(self) -> dict[str, Any]:
        return {
            "name": self.environment,
            "domain": "platform.test",
            "gitRepository": self.cluster.git.url(self.name),
            "gitRevision": self.revision,
            "gitPath": "root",
        }

    def _dag(self) -> dict[str, Any]:
        rows = [
            {"name": name, "application": self.full(name), "dependsOn": list(needed)}
            for name, needed in self.needs.items()
        ]
        stack = {"name": "all", "applications": rows}
        return {
            "apiVersion": "windlass.dev/v1alpha1",
            "kind": "Platform",
            "metadata": {"name": self.name},
            "spec": {"profiles": {"simple": {"health": "25s", "degradedGrace": "5s"}}, "stacks": [stack]},
        }

    def windlass(self, *arguments: str, timeout: float = 300) -> Ended:
        return windlass(*arguments, *self._files, environ=self._environ, timeout=timeout)

    @property
    def _environ(self) -> dict[str, str]:
        kubeconfig = self.kubeconfig or self.cluster.kubeconfig
        return {"KUBECONFIG_PATH": str(kubeconfig), "ENVIRONMENT": self.environment, "PATH": "/usr/bin:/bin"}

    @property
    def _files(self) -> tuple[str, ...]:
        return ("--environment-file", str(self.folder / "environment.yaml"), "--dag", str(self.folder / "dag.yaml"))

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """The process while it runs; it is waited for at the end, and what it said is printed."""
        command = [sys.executable, "-m", "windlass", *arguments, *self._files]
        with (self.folder / "output").open("w+") as output:
            process = subprocess.Popen(command, env=self._environ, stdout=output, stderr=subprocess.STDOUT, text=True)
            try:
                yield process
                process.wait(300)
            finally:
                process.kill()
                print((self.folder / "output").read_text())

    def report(self, *arguments: str, timeout: float = 300) -> tuple[int, dict[str, Any]]:
        ended = self.windlass(*arguments, "--format", "json", timeout=timeout)
        assert ended.stdout, ended.stderr
        return ended.code, json.loads(ended.stdout)

    def windlass_without_platform(self, *arguments: str) -> Ended:
        """With the embedded reference platform."""
        files = ("--environment-file", str(self.folder / "environment.yaml"))
        return windlass(*arguments, *files, environ=self._environ, timeout=300)

    def teardown(self, *arguments: str) -> Ended:
        return self.windlass("teardown", "--confirm", self.environment, *arguments)

    def wait_for_operation(self, name: str, revision: str, phase: str = "") -> None:
        """Until Argo CD shows an operation of this revision, in this phase if one is named."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            shown = self.operations().get(name, {})
            at_revision = shown.get("operation", {}).get("sync", {}).get("revision") == revision
            if at_revision and phase in {"", shown.get("phase")}:
                return
            time.sleep(0.3)
        pytest.fail(f"{name} was not synced to {revision}")

    def request_sync(self, name: str, revision: str, **fields: Any) -> None:
        """As another client would: `argocd app sync` and `argocd app rollback` write just this."""
        sync = {"revision": revision, **fields}
        change = {"operation": {"initiatedBy": {"username": "another-client"}, "sync": sync}}
        application = f"application/{self.full(name)}"
        self.cluster.kubectl("patch", application, "-n", "argocd", "--type=merge", "-p", json.dumps(change))

    def writes(self, since: int) -> list[AuditRecord]:
        """Of ours, by the API server's own journal, after so many records of it."""
        return [record for record in self.cluster.audit()[since:] if is_our_write(record)]

    def shown(self) -> dict[str, dict[str, Any]]:
        """By application: what Argo CD says of it."""
        items = {item["metadata"]["name"]: item for item in self.cluster.get("applications", "-n", "argocd")["items"]}
        return {name: items[self.full(name)] for name in self.needs if self.full(name) in items}

    def revisions(self) -> dict[str, str]:
        return {name: item["status"]["sync"]["revision"] for name, item in self.shown().items()}

    def operations(self) -> dict[str, dict[str, Any]]:
        return {name: item["status"].get("operationState") or {} for name, item in self.shown().items()}


def is_our_write(record: AuditRecord) -> bool:
    """A review is a question, though it is created."""
    is_write = record.verb in {"create", "update", "patch", "delete", "deletecollection"}
    if record.resource.endswith("reviews"):
        return False
    return record.user_agent.startswith("windlass") and is_write and record.stage == "ResponseComplete"
